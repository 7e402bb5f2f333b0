"""Single sign-on with OpenID Connect: the providers of plan managers, and the way to a provider and back."""
