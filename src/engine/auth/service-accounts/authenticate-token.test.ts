import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceAccountTokens } from '#engine/auth/service-accounts/authenticate-token.ts';
import { API_AUDIENCES, encodeClaims } from '#engine/auth/service-accounts/claims.ts';
import { issueToken, signToken, type TokenRequestSpec } from '#engine/auth/service-accounts/issuer.ts';
import { newSigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import {
  ACCOUNT,
  aStoredObject,
  NAMESPACE,
  put,
  remove,
  ManualClock,
  storeWith,
} from '#engine/auth/service-accounts/testing/stored-objects.ts';
import { reviewWith } from '#engine/auth/tokens.ts';
import type { Store } from '#engine/store/store.ts';
import { timestamp } from '#lib/clock.ts';

const key = newSigningKey();
const SECRET_TOKEN = signToken(
  key,
  encodeClaims({ type: 'secret', namespace: NAMESPACE, account: ACCOUNT, secretName: 'kept' }),
);

async function setUp() {
  const clock = new ManualClock();
  const store = await storeWith(
    ['serviceaccounts', aStoredObject('ServiceAccount', 'robot')],
    ['pods', aStoredObject('Pod', 'p')],
    ['secrets', aStoredObject('Secret', 's')],
    ['secrets', aTokenSecret(SECRET_TOKEN)],
    ['nodes', aStoredObject('Node', 'n')],
  );
  const tokens = serviceAccountTokens({ store, clock, key });
  const issue = (spec: Partial<TokenRequestSpec> = {}) =>
    issueToken(
      key,
      { namespace: NAMESPACE, account: ACCOUNT, audiences: API_AUDIENCES, lifetimeSeconds: 600, ...spec },
      clock.now(),
    ).token;
  return { clock, store, tokens, issue };
}

type World = Awaited<ReturnType<typeof setUp>>;

function aTokenSecret(token: string, metadata: object = {}) {
  return aStoredObject('Secret', 'kept', { metadata, data: { token: Buffer.from(token).toString('base64') } });
}

const POD = { pod: { name: 'p', uid: 'uid-p' } };
const INVALIDATED = 'service account token has been invalidated';

const deletedAfter = (clock: ManualClock, ms: number) => ({ deletionTimestamp: timestamp(clock.now() + ms) });
const recreate = (store: Store, plural: string, kind: string, name: string) =>
  put(store, plural, aStoredObject(kind, name, { metadata: { uid: 'uid-new' } }));

interface Case {
  readonly token?: (world: World) => string;
  /** Runs between the issue and the check. */
  readonly meanwhile?: (world: World) => unknown;
  readonly audiences?: readonly string[];
  /** Absent = the token is valid. */
  readonly refused?: string;
}

const cases: Record<string, Case> = {
  'is valid at once': {},
  'is valid in its last millisecond': { meanwhile: ({ clock }) => clock.move(599_999) },
  'expires at its second': {
    meanwhile: ({ clock }) => clock.move(600_000),
    refused: 'service account token has expired',
  },
  'is valid if the clock was set back slightly': { meanwhile: ({ clock }) => clock.move(-60_000) },
  'is not valid long before its time': {
    meanwhile: ({ clock }) => clock.move(-61_000),
    refused: 'service account token is not valid yet',
  },
  'is for another audience': {
    token: ({ issue }) => issue({ audiences: ['vault', 'x"y'] }),
    refused: String.raw`token audiences ["vault" "x\"y"] is invalid for the target audiences ["https://kubernetes.default.svc"]`,
  },
  'is for another audience, which is requested': {
    token: ({ issue }) => issue({ audiences: ['vault'] }),
    audiences: ['vault'],
  },
  'is for this API, and another audience is requested': {
    audiences: ['vault'],
    refused: 'token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences ["vault"]',
  },
  'is invalid without its account': {
    meanwhile: ({ store }) => remove(store, 'serviceaccounts', 'robot'),
    refused: 'serviceaccounts "robot" not found',
  },
  'is not valid for a new account of the same name': {
    meanwhile: ({ store }) => recreate(store, 'serviceaccounts', 'ServiceAccount', 'robot'),
    refused: 'service account UID (uid-new) does not match claim (uid-robot)',
  },
  'is invalid once the deletion of its account began, even if a finalizer delays it': {
    meanwhile: ({ store, clock }) =>
      put(store, 'serviceaccounts', aStoredObject('ServiceAccount', 'robot', { metadata: deletedAfter(clock, 0) })),
    refused: 'service account ns/robot has been deleted',
  },
  'survives a change of its account': {
    meanwhile: ({ store }) =>
      put(store, 'serviceaccounts', aStoredObject('ServiceAccount', 'robot', { metadata: { labels: { a: 'b' } } })),
  },
  'is bound to a pod': { token: ({ issue }) => issue(POD) },
  'is invalid without its pod': {
    token: ({ issue }) => issue(POD),
    meanwhile: ({ store }) => remove(store, 'pods', 'p'),
    refused: INVALIDATED,
  },
  'is not valid for a new pod of the same name': {
    token: ({ issue }) => issue(POD),
    meanwhile: ({ store }) => recreate(store, 'pods', 'Pod', 'p'),
    refused: 'pod UID (uid-new) does not match service account pod ref claim (uid-p)',
  },
  'is valid during the grace period of its pod': {
    token: ({ issue }) => issue(POD),
    meanwhile: ({ store, clock }) =>
      put(store, 'pods', aStoredObject('Pod', 'p', { metadata: deletedAfter(clock, 30_000) })),
  },
  'is invalid after the grace period of its pod': {
    token: ({ issue }) => issue(POD),
    async meanwhile({ store, clock }) {
      await put(store, 'pods', aStoredObject('Pod', 'p', { metadata: deletedAfter(clock, 30_000) }));
      clock.move(30_000);
    },
    refused: INVALIDATED,
  },
  "survives its pod's node": {
    token: ({ issue }) => issue({ ...POD, node: { name: 'n', uid: 'uid-n' } }),
    meanwhile: ({ store }) => remove(store, 'nodes', 'n'),
  },
  'is invalid without its secret': {
    token: ({ issue }) => issue({ secret: { name: 's', uid: 'uid-s' } }),
    meanwhile: ({ store }) => remove(store, 'secrets', 's'),
    refused: INVALIDATED,
  },
  'is not valid for a new secret of the same name': {
    token: ({ issue }) => issue({ secret: { name: 's', uid: 'uid-s' } }),
    meanwhile: ({ store }) => recreate(store, 'secrets', 'Secret', 's'),
    refused: 'secret UID (uid-new) does not match service account secret ref claim (uid-s)',
  },
  'is invalid without its node': {
    token: ({ issue }) => issue({ node: { name: 'n', uid: 'uid-n' } }),
    meanwhile: ({ store }) => remove(store, 'nodes', 'n'),
    refused: INVALIDATED,
  },
  'is not valid for a new node of the same name': {
    token: ({ issue }) => issue({ node: { name: 'n', uid: 'uid-n' } }),
    meanwhile: ({ store }) => recreate(store, 'nodes', 'Node', 'n'),
    refused: 'node UID (uid-new) does not match service account node ref claim (uid-n)',
  },
  'in a secret is valid for years': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ clock }) => clock.move(1e12),
  },
  'in a secret is valid for this API only': {
    token: () => SECRET_TOKEN,
    audiences: ['vault'],
    refused: 'token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences ["vault"]',
  },
  'in a deleted secret is invalid': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ store }) => remove(store, 'secrets', 'kept'),
    refused: 'Token has been invalidated',
  },
  'in a secret under deletion is invalid': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ store, clock }) => put(store, 'secrets', aTokenSecret(SECRET_TOKEN, deletedAfter(clock, 0))),
    refused: 'Token has been invalidated',
  },
  'in a secret that has another token now is invalid': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ store }) => put(store, 'secrets', aTokenSecret(`${SECRET_TOKEN}x`)),
    refused: "Token does not match server's copy",
  },
  'in a secret without its account is invalid': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ store }) => remove(store, 'serviceaccounts', 'robot'),
    refused: 'serviceaccounts "robot" not found',
  },
  'in an invalidated secret is invalid': {
    token: () => SECRET_TOKEN,
    meanwhile: ({ store }) =>
      put(
        store,
        'secrets',
        aTokenSecret(SECRET_TOKEN, { labels: { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' } }),
      ),
    refused:
      "the token in secret ns/kept for service account ns/robot has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
  },
};

for (const [name, { token: make, meanwhile, audiences = API_AUDIENCES, refused }] of Object.entries(cases)) {
  test(`a token ${name}`, async () => {
    const world = await setUp();
    const token = make?.(world) ?? world.issue();
    // Verified tokens are cached, but must not stay valid forever.
    reviewWith(world.tokens, token, audiences);
    await meanwhile?.(world);
    const verdict = reviewWith(world.tokens, token, audiences);
    if (refused !== undefined) assert.deepEqual(verdict, { refused });
    else assert.ok(verdict !== undefined && 'user' in verdict, JSON.stringify(verdict));
    if (audiences === API_AUDIENCES) assert.equal(world.tokens(token) === undefined, refused !== undefined);
  });
}

const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'];
const extra = (more: Record<string, string>) =>
  Object.fromEntries(Object.entries(more).map(([name, value]) => [`authentication.kubernetes.io/${name}`, [value]]));

const users: Record<string, { spec: Partial<TokenRequestSpec>; want: Record<string, string> }> = {
  alone: { spec: {}, want: {} },
  'in a pod': { spec: POD, want: { 'pod-name': 'p', 'pod-uid': 'uid-p' } },
  'in a pod on a node': {
    spec: { ...POD, node: { name: 'n', uid: 'uid-n' } },
    want: { 'node-name': 'n', 'node-uid': 'uid-n', 'pod-name': 'p', 'pod-uid': 'uid-p' },
  },
  'in a pod on an unknown node': {
    spec: { ...POD, node: { name: 'x', uid: '' } },
    want: { 'node-name': 'x', 'pod-name': 'p', 'pod-uid': 'uid-p' },
  },
  'on a node': {
    spec: { node: { name: 'n', uid: 'uid-n' } },
    want: { 'node-name': 'n', 'node-uid': 'uid-n' },
  },
};

for (const [name, { spec, want }] of Object.entries(users)) {
  test(`the user of a token ${name}`, async () => {
    const { tokens, clock } = await setUp();
    const about = { namespace: NAMESPACE, account: ACCOUNT, audiences: API_AUDIENCES, lifetimeSeconds: 600, ...spec };
    const { token, id } = issueToken(key, about, clock.now());
    assert.deepEqual(tokens(token), {
      name: 'system:serviceaccount:ns:robot',
      uid: 'uid-robot',
      groups: GROUPS,
      extra: extra({ 'credential-id': `JTI=${id}`, ...want }),
    });
  });
}

test('the user of a token in a secret has no extras', async () => {
  const { tokens } = await setUp();
  assert.deepEqual(tokens(SECRET_TOKEN), {
    name: 'system:serviceaccount:ns:robot',
    uid: 'uid-robot',
    groups: GROUPS,
  });
});

test('only the audiences of both the token and the request are returned', async () => {
  const { tokens, issue } = await setUp();
  const verdict = reviewWith(tokens, issue({ audiences: ['a', 'b', 'c'] }), ['c', 'x', 'a']);
  assert.deepEqual(verdict && 'user' in verdict && verdict.audiences, ['a', 'c']);
});
