// An OpenID Connect provider for the tests. Anybody can sign in, with an email as the login.
// Arguments: the issuer and the keys and clients as JSON. It prints its port.
import Provider from "oidc-provider";

const [issuer, keys, clients, claimsInIdToken] = process.argv.slice(2);

const provider = new Provider(issuer, {
  clients: JSON.parse(clients),
  jwks: { keys: JSON.parse(keys) },
  cookies: { keys: ["a key of the tests"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: claimsInIdToken !== "yes",
  pkce: { required: () => true },
  ttl: { Grant: 600, Session: 600, Interaction: 600, IdToken: 300, AccessToken: 300, AuthorizationCode: 60 },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: !id.startsWith("unverified"), name: "Robin Hale" }),
  }),
});

const server = provider.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
