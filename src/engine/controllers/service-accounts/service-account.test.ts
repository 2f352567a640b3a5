/** Tests of the decisions about default accounts, the published CA certificate and token Secrets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Namespace } from '#engine/controllers/kinds.ts';
import { decideRootCa } from '#engine/controllers/service-accounts/root-ca.ts';
import { decideServiceAccount } from '#engine/controllers/service-accounts/service-account.ts';
import { decideTokenSecret } from '#engine/controllers/service-accounts/token-secrets.ts';
import type { ConfigMap, Secret } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

function stored<T extends KubeObject>(kind: string, name: string, fields: object = {}): Stored<T> {
  const { metadata, ...rest } = fields as { metadata?: object };
  const base = { name, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'v1', kind, metadata: { ...base, ...metadata }, ...rest } as unknown as Stored<T>;
}

const DELETING = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };
const living = stored<Namespace>('Namespace', 'ns', { status: { phase: 'Active' } });
const deleting = stored<Namespace>('Namespace', 'ns', DELETING);
const ending = stored<Namespace>('Namespace', 'ns', { status: { phase: 'Terminating' } });
const inNs = { metadata: { namespace: 'ns' } };

const DESCRIPTION = { 'kubernetes.io/description': 'a description' };
const published = (data: Record<string, string>, annotations: object = DESCRIPTION, metadata: object = {}) =>
  stored<ConfigMap>('ConfigMap', 'kube-root-ca.crt', { metadata: { annotations, ...metadata }, data });

const rootCa = (namespace: Stored<Namespace>, configMap?: Stored<ConfigMap>) =>
  decideRootCa({ namespace, configMap, caPem: 'PEM' });

const base64 = (text: string) => Buffer.from(text).toString('base64');
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';
const account = stored('ServiceAccount', 'robot', inNs);
const full = { token: base64('old'), 'ca.crt': base64('PEM'), namespace: base64('ns') };

function tokenSecret(data: Record<string, string>, more: object = {}): Stored<Secret> {
  const { metadata, ...rest } = more as { metadata?: object };
  return stored<Secret>('Secret', 's', { metadata: { namespace: 'ns', ...metadata }, data, ...rest });
}

const decideFor = (secret: Stored<Secret>, owner: Stored | undefined = account) =>
  decideTokenSecret({ secret, account: owner, caPem: 'PEM', makeToken: () => 'new' });

const cases: Record<string, { plan: () => Plan; want: string[] }> = {
  'creates the default account': {
    plan: () => decideServiceAccount({ namespace: living, account: undefined }),
    want: ['create serviceaccounts ns/default {}'],
  },
  'keeps an existing default account': {
    plan: () => decideServiceAccount({ namespace: living, account: stored('ServiceAccount', 'default') }),
    want: [],
  },
  'does not create a default account while the old one is being deleted': {
    plan: () => decideServiceAccount({ namespace: living, account: stored('ServiceAccount', 'default', DELETING) }),
    want: [],
  },
  'creates no account in a namespace under deletion': {
    plan: () => decideServiceAccount({ namespace: deleting, account: undefined }),
    want: [],
  },
  'creates no account in a namespace with phase Terminating': {
    plan: () => decideServiceAccount({ namespace: ending, account: undefined }),
    want: [],
  },
  'publishes the CA': {
    plan: () => rootCa(living),
    want: ['create configmaps ns/kube-root-ca.crt {"data":{"ca.crt":"PEM"}}'],
  },
  'keeps a correct CA': { plan: () => rootCa(living, published({ 'ca.crt': 'PEM' })), want: [] },
  'publishes no CA in a namespace under deletion': { plan: () => rootCa(deleting), want: [] },
  'does not publish a CA while the old ConfigMap is being deleted': {
    plan: () => rootCa(living, published({}, {}, DELETING.metadata)),
    want: [],
  },
  'corrects a wrong CA and removes other keys': {
    plan: () => rootCa(living, published({ 'ca.crt': 'X', more: 'Y' })),
    want: ['patch configmaps ns/kube-root-ca.crt uid-kube-root-ca.crt {"ca.crt":"PEM","more":null}'],
  },
  'restores the description annotation of the CA': {
    plan: () => rootCa(living, published({ 'ca.crt': 'PEM' }, {})),
    want: ['patch configmaps ns/kube-root-ca.crt uid-kube-root-ca.crt {"ca.crt":"PEM"}'],
  },
  'writes the missing data of a token Secret': {
    plan: () => decideFor(tokenSecret({ mine: 'x' })),
    want: [
      `patch secrets ns/s uid-s {"ca.crt":"${base64('PEM')}","namespace":"${base64('ns')}","token":"${base64('new')}"}`,
    ],
  },
  'keeps a complete Secret': { plan: () => decideFor(tokenSecret(full)), want: [] },
  'keeps the token if only the CA is wrong': {
    plan: () => decideFor(tokenSecret({ ...full, 'ca.crt': base64('X') })),
    want: [`patch secrets ns/s uid-s {"ca.crt":"${base64('PEM')}"}`],
  },
  'does not change an immutable Secret': { plan: () => decideFor(tokenSecret({}, { immutable: true })), want: [] },
  'does not change a Secret under deletion': { plan: () => decideFor(tokenSecret({}, DELETING)), want: [] },
};

for (const [name, { plan, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(plan().changes.map(describeChange), want));
}

test('deletes the Secret of an account that does not exist', () => {
  const { changes } = decideTokenSecret({
    secret: tokenSecret(full),
    account: undefined,
    caPem: 'PEM',
    makeToken: () => assert.fail('there is no account to sign a token for'),
  });
  assert.deepEqual(changes.map(describeChange), ['delete secrets ns/s uid-s']);
});

test('writes the name and uid of the account to the Secret', () => {
  const [change] = decideFor(tokenSecret({})).changes;
  assert.ok(change?.do === 'patch');
  const { metadata } = change.patch.body as { metadata: object };
  assert.deepEqual(metadata, { annotations: { [NAME]: 'robot', [UID]: 'uid-robot' } });
});

function describeChange(change: Change): string {
  const { type } = change;
  if (change.do === 'create') {
    const { apiVersion: _a, kind: _k, metadata, ...rest } = change.object;
    return `create ${type.plural} ${metadata.namespace}/${metadata.name} ${JSON.stringify(rest)}`;
  }
  const { namespace, name } = change.name;
  const head = `${change.do} ${type.plural} ${namespace}/${name} ${change.uid}`;
  if (change.do === 'delete') return head;
  const { data } = change.patch.body as { data: Record<string, unknown> };
  return `${head} ${JSON.stringify(data)}`;
}
