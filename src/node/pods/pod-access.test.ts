import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { PodAccess, requestsToken } from '#node/pods/pod-access.ts';

function aPod(uid = 'u-1'): Stored<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid, resourceVersion: '1', creationTimestamp: timestamp(0) },
    spec: { serviceAccountName: 'sa', containers: [] },
  };
}

/** An API server that issues numbered tokens with the given lifetime. */
async function scene(t: TestContext, { lifeSeconds = 3600, withCa = true } = {}) {
  const clock = new FakeClock();
  const dir = join(await mkdtemp(join(tmpdir(), 'pod-access-')), 'pods');
  t.after(() => rm(join(dir, '..'), { recursive: true }));
  const requests: { object: KubeObject; subresource: string | undefined }[] = [];
  const failures: Error[] = [];
  const access = new PodAccess({
    dir,
    server: 'https://api:6443',
    certificateAuthority: withCa ? 'PEM' : undefined,
    clock,
    signal: new AbortController().signal,
    client: {
      async create<T extends KubeObject>(_: unknown, object: T, options: { subresource?: string } = {}) {
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        requests.push({ object, subresource: options.subresource });
        const expirationTimestamp = timestamp(clock.now() + lifeSeconds * 1000);
        return {
          ...object,
          status: { token: `token-${requests.length}`, expirationTimestamp },
        } as unknown as Stored<T>;
      },
    },
  });
  const token = (uid = 'u-1') => readFile(join(dir, uid, 'token'), 'utf8');
  return { access, clock, dir, requests, failures, token };
}

test('writes a token that is bound to the pod to private files', async (t) => {
  const { access, dir, requests, token } = await scene(t);
  assert.deepEqual(await access.open(aPod()), {
    SELFSAME_API_SERVER: 'https://api:6443',
    SELFSAME_TOKEN_FILE: join(dir, 'u-1/token'),
    SELFSAME_CA_FILE: join(dir, 'u-1/ca.crt'),
  });
  assert.equal(requests[0]?.subresource, 'token');
  assert.deepEqual([requests[0].object.metadata.namespace, requests[0].object.metadata.name], ['ns', 'sa']);
  assert.deepEqual(requests[0].object['spec'], {
    expirationSeconds: 3600,
    boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u-1' },
  });
  assert.equal(await token(), 'token-1');
  assert.equal(await readFile(join(dir, 'u-1/ca.crt'), 'utf8'), 'PEM');
  const modes = await Promise.all(['', 'u-1', 'u-1/token'].map(async (path) => (await stat(join(dir, path))).mode));
  assert.deepEqual(
    modes.map((mode) => mode & 0o777),
    [0o700, 0o700, 0o600],
  );
});

test("without a certificate authority the program uses the system's", async (t) => {
  const { access } = await scene(t, { withCa: false });
  assert.deepEqual(Object.keys(await access.open(aPod())), ['SELFSAME_API_SERVER', 'SELFSAME_TOKEN_FILE']);
});

test('renews a token after 80% of its lifetime', async (t) => {
  const { access, clock, token } = await scene(t);
  await access.open(aPod());
  assert.equal(await access.renew(aPod()), 2_880_000);
  await clock.advance(2_879_000);
  assert.equal(await access.renew(aPod()), 1000);
  assert.equal(await token(), 'token-1');
  await clock.advance(1000);
  assert.equal(await access.renew(aPod()), 2_880_000);
  assert.equal(await token(), 'token-2');
});

test('renews a token with a shorter lifetime earlier', async (t) => {
  const { access } = await scene(t, { lifeSeconds: 600 });
  await access.open(aPod());
  assert.equal(await access.renew(aPod()), 480_000);
});

test('limits the renewals of a token that expires at once', async (t) => {
  const { access } = await scene(t, { lifeSeconds: -60 });
  await access.open(aPod());
  assert.equal(await access.renew(aPod()), 10_000);
});

test('keeps the old token after a failed renewal, and tries again', async (t) => {
  const { access, clock, failures, token } = await scene(t);
  await access.open(aPod());
  await clock.advance(2_880_000);
  failures.push(new Error('no'));
  await assert.rejects(access.renew(aPod()), /no/);
  assert.equal(await token(), 'token-1');
  await access.renew(aPod());
  assert.equal(await token(), 'token-2');
});

test('close removes all files, also of a pod that never got a token', async (t) => {
  const { access, dir, failures } = await scene(t);
  await access.open(aPod());
  failures.push(new Error('no'));
  await assert.rejects(access.open(aPod('u-2')), /no/);
  await access.close('u-1');
  await access.close('u-2');
  await access.close('u-2');
  assert.deepEqual(await readdir(dir), []);
  assert.equal(await access.renew(aPod()), undefined);
});

test('rejects a uid that leads out of the directory', async (t) => {
  const { access } = await scene(t);
  await assert.rejects(access.open(aPod('../../etc')), /is not a pod uid/);
});

const source = (projection: object) => ({ name: 'v', projected: { sources: [{ configMap: {} }, projection] } });
const mounts = [{ name: 'v', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }];
const tokenCases: Record<string, { spec: Partial<Pod['spec']>; mounted?: boolean; want: boolean }> = {
  'with the default token volume': {
    spec: { volumes: [source({ serviceAccountToken: { path: 'token' } })] },
    want: true,
  },
  'without a volume': { spec: {}, want: false },
  'with a token volume that is not mounted': {
    spec: { volumes: [source({ serviceAccountToken: { path: 'token' } })] },
    mounted: false,
    want: false,
  },
  'with a token for another audience': {
    spec: { volumes: [source({ serviceAccountToken: { path: 'token', audience: 'vault' } })] },
    want: false,
  },
};

for (const [sentence, { spec, mounted = true, want }] of Object.entries(tokenCases)) {
  test(`a pod ${sentence} ${want ? 'requests' : 'does not request'} a token`, () => {
    const containers = [{ name: 'c', image: 'i', ...(mounted && { volumeMounts: mounts }) }];
    assert.equal(requestsToken({ ...aPod(), spec: { ...spec, containers } }), want);
  });
}
