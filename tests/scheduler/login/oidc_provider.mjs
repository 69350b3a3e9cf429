// SPDX-License-Identifier: Apache-2.0
//
// The program oidc-provider, over TLS, for test_login.py. It can be told to spoil its ID tokens.
//
//     node oidc_provider.mjs CERT KEY
//
// Prints {"port", "control"}. Requests to the control port, POST with JSON:
//     /start {"redirect_uri"}     makes the provider; before that, nothing is at its port
//     /groups {"ann": ["a"]}      what groups its users are in
//     /mode {"mode"}              how ID tokens are spoiled; "" = not at all
import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import Provider from "oidc-provider";

const [cert, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const pairs = ["k1", "k2"].map((kid) => {
  const pair = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { kid, pair, jwk: { ...pair.privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" } };
});
const stranger = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
let mode = "";
let groups = {};
let rotated = false;
let handler = (request, response) => response.writeHead(503).end();

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

function sign(header, claims, privateKey) {
  const text = encode(header) + "." + encode(claims);
  return text + "." + crypto.sign("sha256", Buffer.from(text), privateKey).toString("base64url");
}

function spoil(token) {
  const [head, body, signature] = token.split(".");
  const header = JSON.parse(Buffer.from(head, "base64url"));
  const claims = JSON.parse(Buffer.from(body, "base64url"));
  const own = pairs[0].pair.privateKey;
  const now = Math.floor(Date.now() / 1000);
  switch (mode) {
    case "expired":
      return sign(header, { ...claims, iat: now - 7200, exp: now - 3600 }, own);
    case "future":
      return sign(header, { ...claims, iat: now + 3600, exp: now + 7200 }, own);
    case "audience":
      return sign(header, { ...claims, aud: "another-client" }, own);
    case "azp":
      return sign(header, { ...claims, aud: [claims.aud, "x"], azp: "x" }, own);
    case "issuer":
      return sign(header, { ...claims, iss: "https://evil.example" }, own);
    case "nonce":
      return sign(header, { ...claims, nonce: "another" }, own);
    case "user":
      return sign(header, { ...claims, sub: "eve", preferred_username: "eve" }, own);
    case "kid":
      return sign({ ...header, kid: "unknown" }, claims, own);
    case "signature":
      return head + "." + encode({ ...claims, preferred_username: "root" }) + "." + signature;
    case "stranger":
      return sign(header, claims, stranger.privateKey);
    case "none":
      return encode({ alg: "none" }) + "." + body + ".";
    case "hs256": {
      const text = encode({ alg: "HS256", kid: header.kid }) + "." + body;
      const secret = pairs[0].pair.publicKey.export({ type: "spki", format: "pem" });
      return text + "." + crypto.createHmac("sha256", secret).update(text).digest("base64url");
    }
    case "rotated":
      return sign({ ...header, kid: "k2" }, claims, pairs[1].pair.privateKey);
    default:
      return token;
  }
}

function make(redirectUri) {
  const provider = new Provider("https://127.0.0.1:" + server.address().port, {
    clients: [
      {
        client_id: "belay",
        client_secret: "s3cret/+ word",
        redirect_uris: [redirectUri],
        grant_types: [
          "authorization_code",
          "refresh_token",
          "urn:ietf:params:oauth:grant-type:device_code",
        ],
      },
    ],
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    scopes: ["openid", "profile", "groups", "offline_access"],
    conformIdTokenClaims: false,
    cookies: { keys: ["test"] },
    features: { deviceFlow: { enabled: true } },
    findAccount: (context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
    }),
    jwks: { keys: [pairs[0].jwk] },
    pkce: { required: () => true },
  });
  provider.use(async (context, next) => {
    await next();
    if (context.path === "/token" && context.body?.id_token) {
      context.body = { ...context.body, id_token: spoil(context.body.id_token) };
    } else if (context.path === "/jwks" && rotated) {
      const { n, e, kty } = pairs[1].jwk;
      context.body = { keys: [...context.body.keys, { kid: "k2", kty, n, e, use: "sig", alg: "RS256" }] };
    }
  });
  return provider.callback();
}

const server = https.createServer({ cert, key }, (request, response) => handler(request, response));
const control = http.createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  const body = JSON.parse(text);
  if (request.url === "/start") handler = make(body.redirect_uri);
  else if (request.url === "/groups") groups = body;
  else {
    mode = body.mode;
    rotated ||= mode === "rotated";
  }
  response.end("{}");
});
server.listen(0, "127.0.0.1", () =>
  control.listen(0, "127.0.0.1", () =>
    console.log(JSON.stringify({ port: server.address().port, control: control.address().port })),
  ),
);
process.stdin.on("end", () => process.exit(0)).resume();
