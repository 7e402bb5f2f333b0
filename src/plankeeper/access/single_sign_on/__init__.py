"""Single sign-on with OpenID Connect: the providers of plan managers, the authorization request and the callback."""
