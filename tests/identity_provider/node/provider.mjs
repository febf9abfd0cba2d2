// An OpenID provider on loopback: `node provider.mjs SETTINGS`, with SETTINGS as JSON.
//
// In: {accessTokenSeconds, rotateRefreshTokens}.
// Out: the line "issuer URL" on standard output as soon as it serves. Clients register themselves (RFC 7591).
// It accepts any user name. It must never ask for more than the login form: consent and logout are accepted at once.

import http from 'node:http';

import { Provider } from 'oidc-provider';

const settings = JSON.parse(process.argv[2]);
const server = http.createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://localhost:${server.address().port}`;

const FORM = `<!doctype html><title>Sign in</title><form method=post>
<input name=username><input name=password type=password><button>Sign in</button></form>`;

async function findAccount(ctx, sub) {
  return {
    accountId: sub,
    claims: async () => ({ sub, email: `${sub}@example.com`, groups: ['staff'] }),
  };
}

/** Grant all that a client asks for, without a page. */
async function loadExistingGrant(ctx) {
  const { session, client, params, provider } = ctx.oidc;
  const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId });
  grant.addOIDCScope(params.scope);
  await grant.save();
  return grant;
}

const provider = new Provider(issuer, {
  findAccount,
  loadExistingGrant,
  claims: { openid: ['sub'], email: ['email'], profile: ['groups'] },
  conformIdTokenClaims: false,
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
  cookies: { keys: ['a key of a test on loopback'] },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: async (ctx, form) => {
        const agreed = form.replace('</form>', '<input type=hidden name=logout value=yes></form>');
        ctx.body = `<!doctype html><title>Sign out</title>${agreed}
<script>document.getElementById('op.logoutForm').submit()</script>`;
      },
      postLogoutSuccessSource: async (ctx) => {
        ctx.body = '<!doctype html><title>Signed out</title>';
      },
    },
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  pkce: { required: () => true },
  rotateRefreshToken: () => settings.rotateRefreshTokens,
  ttl: {
    AccessToken: settings.accessTokenSeconds,
    AuthorizationCode: 60,
    Grant: 86400,
    IdToken: settings.accessTokenSeconds,
    Interaction: 600,
    RefreshToken: 86400,
    Session: 86400,
  },
});

async function readForm(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return new URLSearchParams(Buffer.concat(parts).toString());
}

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  ctx.set('cache-control', 'no-store');
  if (ctx.method !== 'POST') {
    ctx.type = 'html';
    ctx.body = FORM;
    return undefined;
  }
  const form = await readForm(ctx.req);
  const result = { login: { accountId: form.get('username') }, consent: {} };
  ctx.status = 303;
  ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result));
  return undefined;
});

server.on('request', provider.callback());
console.log(`issuer ${issuer}`);
