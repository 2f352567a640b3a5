import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { serviceAccountAdmission, serviceAccountValidation } from '#engine/admission/service-account.ts';
import { aStoredObject, put, ManualClock, storeWith } from '#engine/auth/service-accounts/testing/stored-objects.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { serviceAccounts } from '#engine/registry/kinds/core/service-account.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

type Loose = Record<string, unknown>;

const MOUNT = { name: 'kube-api-access-*', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' };
const VOLUME = {
  name: 'kube-api-access-*',
  projected: {
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
    defaultMode: 420,
  },
};
const MIRROR = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
const OWN_MOUNT = { name: 'own', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' };
const ENFORCING = { annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } };

const plain = { containers: [{ name: 'c', image: 'i' }] };
const withAccount = (name: string, more: Loose = {}) => ({ serviceAccountName: name, serviceAccount: name, ...more });

function setUp(): Promise<Store> {
  return storeWith(
    ['serviceaccounts', aStoredObject('ServiceAccount', 'default')],
    ['serviceaccounts', aStoredObject('ServiceAccount', 'quiet', { automountServiceAccountToken: false })],
    [
      'serviceaccounts',
      aStoredObject('ServiceAccount', 'puller', { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }),
    ],
    [
      'serviceaccounts',
      aStoredObject('ServiceAccount', 'strict', {
        metadata: ENFORCING,
        automountServiceAccountToken: false,
        secrets: [{ name: 'mine' }],
        imagePullSecrets: [{ name: 'pull' }],
      }),
    ],
  );
}

function attributes(object: KubeObject, more: Partial<AdmissionAttributes> = {}): AdmissionAttributes {
  return {
    operation: 'CREATE',
    resource: pods,
    kind: pods,
    subresource: '',
    namespace: 'ns',
    name: object.metadata.name ?? '',
    object,
    oldObject: undefined,
    user: { name: 'jane', groups: [] },
    dryRun: false,
    options: {},
    notes: { warn() {}, annotate() {} },
    signal: new AbortController().signal,
    reshape() {},
    ...more,
  };
}

interface Case {
  readonly spec: Loose;
  readonly metadata?: Loose;
  readonly more?: Partial<AdmissionAttributes>;
  /** The expected spec; names of generated volumes end with a star. */
  readonly want?: Loose;
  readonly refused?: string;
}

const because = 'is not allowed because service account strict does not reference that';
const mounted = { containers: [{ name: 'c', image: 'i', volumeMounts: [MOUNT] }], volumes: [VOLUME] };

const cases: Record<string, Case> = {
  'sets the default account and mounts its token': { spec: plain, want: withAccount('default', mounted) },
  'reads the deprecated field': {
    spec: { ...plain, serviceAccount: 'quiet' },
    want: withAccount('quiet', plain),
  },
  'prefers the current field': {
    spec: { ...plain, serviceAccountName: 'quiet', serviceAccount: 'default' },
    want: withAccount('quiet', plain),
  },
  'mounts the token in init containers, too, and keeps other mounts': {
    spec: {
      initContainers: [{ name: 'i' }],
      containers: [{ name: 'c', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data' }],
    },
    want: withAccount('default', {
      initContainers: [{ name: 'i', volumeMounts: [MOUNT] }],
      containers: [{ name: 'c', volumeMounts: [{ name: 'data', mountPath: '/data' }, MOUNT] }],
      volumes: [{ name: 'data' }, VOLUME],
    }),
  },
  'mounts nothing if the container has a mount at the path': {
    spec: { containers: [{ name: 'c', volumeMounts: [OWN_MOUNT] }, { name: 'd' }] },
    want: withAccount('default', {
      containers: [
        { name: 'c', volumeMounts: [OWN_MOUNT] },
        { name: 'd', volumeMounts: [MOUNT] },
      ],
      volumes: [VOLUME],
    }),
  },
  'adds no unused volume': {
    spec: { containers: [{ name: 'c', volumeMounts: [OWN_MOUNT] }] },
    want: withAccount('default', { containers: [{ name: 'c', volumeMounts: [OWN_MOUNT] }] }),
  },
  'uses an existing volume': {
    spec: { ...plain, volumes: [{ name: 'kube-api-access-own' }] },
    want: withAccount('default', {
      containers: [{ name: 'c', image: 'i', volumeMounts: [{ ...MOUNT, name: 'kube-api-access-own' }] }],
      volumes: [{ name: 'kube-api-access-own' }],
    }),
  },
  'leaves a volume without a name to validation': {
    spec: { ...plain, volumes: [{ emptyDir: {} }] },
    want: withAccount('default', { ...mounted, volumes: [{ emptyDir: {} }, VOLUME] }),
  },
  'mounts nothing if the pod disables it': {
    spec: { ...plain, automountServiceAccountToken: false },
    want: withAccount('default', { ...plain, automountServiceAccountToken: false }),
  },
  'mounts the token if the pod enables it and the account disables it': {
    spec: { ...plain, serviceAccountName: 'quiet', automountServiceAccountToken: true },
    want: withAccount('quiet', { ...mounted, automountServiceAccountToken: true }),
  },
  'adds the pull secrets of the account': {
    spec: { ...plain, serviceAccountName: 'puller', automountServiceAccountToken: false },
    want: withAccount('puller', {
      ...plain,
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'a' }, { name: 'b' }],
    }),
  },
  'keeps the pull secrets of the pod': {
    spec: {
      ...plain,
      serviceAccountName: 'puller',
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'x' }],
    },
    want: withAccount('puller', { ...plain, automountServiceAccountToken: false, imagePullSecrets: [{ name: 'x' }] }),
  },
  'refuses a missing account': {
    spec: { ...plain, serviceAccountName: 'nobody' },
    refused: 'pods "p" is forbidden: error looking up service account ns/nobody: serviceaccount "nobody" not found',
  },
  'reports a pod without a name by its generateName': {
    spec: { ...plain, serviceAccountName: 'nobody' },
    metadata: { name: undefined, generateName: 'p-' },
    refused: 'pods "p-" is forbidden: error looking up service account ns/nobody: serviceaccount "nobody" not found',
  },
  'does not change a mirror pod': { spec: plain, metadata: MIRROR, want: plain },
  'refuses a mirror pod with an account': {
    spec: { ...plain, serviceAccountName: 'default' },
    metadata: MIRROR,
    refused: 'pods "p" is forbidden: a mirror pod may not reference service accounts',
  },
  'refuses a mirror pod with a secret': {
    spec: { ...plain, volumes: [{ name: 'v', secret: { secretName: 's' } }] },
    metadata: MIRROR,
    refused: 'pods "p" is forbidden: a mirror pod may not reference secrets',
  },
  'refuses a mirror pod with a secret in a projection': {
    spec: { ...plain, volumes: [{ name: 'v', projected: { sources: [{ secret: { name: 's' } }] } }] },
    metadata: MIRROR,
    refused: 'pods "p" is forbidden: a mirror pod may not reference secrets',
  },
  'refuses a mirror pod with a token': {
    spec: { ...plain, volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
    metadata: MIRROR,
    refused: 'pods "p" is forbidden: a mirror pod may not use ServiceAccountToken volume projections',
  },
  'allows the secrets of an enforcing account': {
    spec: { containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'mine' } }] }], serviceAccountName: 'strict' },
    want: withAccount('strict', {
      containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'mine' } }] }],
      imagePullSecrets: [{ name: 'pull' }],
    }),
  },
  'refuses a volume of another secret': {
    spec: { ...plain, serviceAccountName: 'strict', volumes: [{ name: 'v', secret: { secretName: 's' } }] },
    refused: `pods "p" is forbidden: volume with secret.secretName="s" ${because} secret`,
  },
  'refuses a variable of another secret': {
    spec: {
      initContainers: [{ name: 'i', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }],
      containers: [],
      serviceAccountName: 'strict',
    },
    refused: `pods "p" is forbidden: init container i with envVar E referencing secret.secretName="s" ${because} secret`,
  },
  'refuses variables of another secret': {
    spec: { containers: [{ name: 'c', envFrom: [{ secretRef: { name: 's' } }] }], serviceAccountName: 'strict' },
    refused: `pods "p" is forbidden: container c with envFrom referencing secret.secretName="s" ${because} secret`,
  },
  'refuses another pull secret': {
    spec: { ...plain, serviceAccountName: 'strict', imagePullSecrets: [{ name: 'pull' }, { name: 's' }] },
    refused: `pods "p" is forbidden: imagePullSecrets[1].name="s" ${because} imagePullSecret`,
  },
  'ignores updates': { spec: plain, more: { operation: 'UPDATE' }, want: plain },
  'ignores subresources': { spec: plain, more: { subresource: 'binding' }, want: plain },
  'ignores other kinds': { spec: plain, more: { resource: serviceAccounts }, want: plain },
};

for (const [name, { spec, metadata = {}, more, want, refused }] of Object.entries(cases)) {
  test(name, async () => {
    const store = await setUp();
    const pod = aStoredObject('Pod', 'p', { metadata, spec: structuredClone(spec) });
    const given = attributes(pod, more);
    assert.equal(
      refusalOf(() => serviceAccountAdmission(store)(given)),
      refused,
    );
    if (want === undefined) return;
    assert.deepEqual(maskGeneratedNames(pod['spec']), want);
    assert.equal(
      refusalOf(() => serviceAccountValidation(store)(given)),
      undefined,
      'the result must pass validation',
    );
    void serviceAccountAdmission(store)(given);
    assert.deepEqual(maskGeneratedNames(pod['spec']), want, 'admission must be idempotent');
  });
}

/** Returns the error of a step that decides synchronously. */
function refusalOf(step: () => void | Promise<void>): string | undefined {
  try {
    assert.equal(step(), undefined);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    return error.message;
  }
}

function maskGeneratedNames(spec: unknown): unknown {
  return JSON.parse(
    JSON.stringify(spec).replaceAll(/kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}"/g, 'kube-api-access-*"'),
  );
}

const later: Record<string, { spec: Loose; want: string | undefined }> = {
  'an account that was deleted meanwhile': {
    spec: withAccount('nobody', plain),
    want: 'pods "p" is forbidden: error looking up service account ns/nobody: serviceaccount "nobody" not found',
  },
  'no account': { spec: plain, want: 'pods "p" is forbidden: no service account specified for pod ns/p' },
  'a secret that a webhook added': {
    spec: withAccount('strict', { ...plain, volumes: [{ name: 'v', secret: { secretName: 's' } }] }),
    want: `pods "p" is forbidden: volume with secret.secretName="s" ${because} secret`,
  },
  nothing: { spec: withAccount('default', plain), want: undefined },
};

for (const [name, { spec, want }] of Object.entries(later)) {
  test(`validates again after mutation: ${name}`, async () => {
    const given = attributes(aStoredObject('Pod', 'p', { spec }));
    const store = await setUp();
    assert.equal(
      refusalOf(() => serviceAccountValidation(store)(given)),
      want,
    );
  });
}

const REFUSED = /error looking up service account ns\/default: serviceaccount "default" not found/;

test('waits for the default account of a new namespace', async () => {
  const [store, clock] = [await storeWith(), new ManualClock()];
  const pod = aStoredObject('Pod', 'p', { spec: structuredClone(plain) });
  const waiting = serviceAccountAdmission(store, clock)(attributes(pod));
  assert.ok(waiting instanceof Promise);
  await put(store, 'serviceaccounts', aStoredObject('ServiceAccount', 'default-other'));
  assert.equal(clock.waiting, 1, 'another account must not end the wait');
  await put(store, 'serviceaccounts', aStoredObject('ServiceAccount', 'default'));
  await waiting;
  assert.deepEqual(maskGeneratedNames(pod['spec']), withAccount('default', mounted));
  assert.equal(clock.waiting, 0);
});

test('stops waiting after the limit', async () => {
  const [store, clock] = [await storeWith(), new ManualClock()];
  const waiting = serviceAccountAdmission(store, clock)(attributes(aStoredObject('Pod', 'p', { spec: { ...plain } })));
  clock.fireAll();
  await assert.rejects(waiting as Promise<void>, REFUSED);
  assert.equal(clock.waiting, 0);
});

test('stops waiting when the client disconnects', async () => {
  const [store, clock, gone] = [await storeWith(), new ManualClock(), new AbortController()];
  const given = attributes(aStoredObject('Pod', 'p', { spec: { ...plain } }), { signal: gone.signal });
  const waiting = serviceAccountAdmission(store, clock)(given);
  gone.abort();
  await assert.rejects(waiting as Promise<void>, REFUSED);
  assert.equal(clock.waiting, 0);
});
