import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { PodAccess, wantsToken } from '#node/pods/pod-access.ts';

function aPod(uid = 'u-1'): Stored<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid, resourceVersion: '1', creationTimestamp: timestamp(0) },
    spec: { serviceAccountName: 'sa', containers: [] },
  };
}

/** Tokens count up; each lives as long as the server says. */
async function scene(t: TestContext, { lifeSeconds = 3600, withCa = true } = {}) {
  const clock = new FakeClock();
  const dir = join(await mkdtemp(join(tmpdir(), 'pod-access-')), 'pods');
  t.after(() => rm(join(dir, '..'), { recursive: true }));
  const asked: { object: KubeObject; subresource: string | undefined }[] = [];
  const faults: Error[] = [];
  const access = new PodAccess({
    dir,
    server: 'https://api:6443',
    certificateAuthority: withCa ? 'PEM' : undefined,
    clock,
    signal: new AbortController().signal,
    client: {
      async create<T extends KubeObject>(_: unknown, object: T, options: { subresource?: string } = {}) {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        asked.push({ object, subresource: options.subresource });
        const expirationTimestamp = timestamp(clock.now() + lifeSeconds * 1000);
        return { ...object, status: { token: `token-${asked.length}`, expirationTimestamp } } as unknown as Stored<T>;
      },
    },
  });
  const token = (uid = 'u-1') => readFile(join(dir, uid, 'token'), 'utf8');
  return { access, clock, dir, asked, faults, token };
}

test('a token of the account, bound to the pod, in files that only we read', async (t) => {
  const { access, dir, asked, token } = await scene(t);
  assert.deepEqual(await access.open(aPod()), {
    SELFSAME_API_SERVER: 'https://api:6443',
    SELFSAME_TOKEN_FILE: join(dir, 'u-1/token'),
    SELFSAME_CA_FILE: join(dir, 'u-1/ca.crt'),
  });
  assert.equal(asked[0]?.subresource, 'token');
  assert.deepEqual([asked[0].object.metadata.namespace, asked[0].object.metadata.name], ['ns', 'sa']);
  assert.deepEqual(asked[0].object['spec'], {
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

test("without an authority of its own the program takes the system's", async (t) => {
  const { access } = await scene(t, { withCa: false });
  assert.deepEqual(Object.keys(await access.open(aPod())), ['SELFSAME_API_SERVER', 'SELFSAME_TOKEN_FILE']);
});

test('it is renewed before it ends, not earlier', async (t) => {
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

test('one that the server gives for a shorter time is renewed earlier', async (t) => {
  const { access } = await scene(t, { lifeSeconds: 600 });
  await access.open(aPod());
  assert.equal(await access.renew(aPod()), 480_000);
});

test('one that is over at once is not asked for all the time', async (t) => {
  const { access } = await scene(t, { lifeSeconds: -60 });
  await access.open(aPod());
  assert.equal(await access.renew(aPod()), 10_000);
});

test('a renewal that fails leaves the old token, and is tried again', async (t) => {
  const { access, clock, faults, token } = await scene(t);
  await access.open(aPod());
  await clock.advance(2_880_000);
  faults.push(new Error('no'));
  await assert.rejects(access.renew(aPod()), /no/);
  assert.equal(await token(), 'token-1');
  await access.renew(aPod());
  assert.equal(await token(), 'token-2');
});

test('nothing is left of what was closed, also where it never got a token', async (t) => {
  const { access, dir, faults } = await scene(t);
  await access.open(aPod());
  faults.push(new Error('no'));
  await assert.rejects(access.open(aPod('u-2')), /no/);
  await access.close('u-1');
  await access.close('u-2');
  await access.close('u-2');
  assert.deepEqual(await readdir(dir), []);
  assert.equal(await access.renew(aPod()), undefined);
});

test('a uid leads nowhere else', async (t) => {
  const { access } = await scene(t);
  await assert.rejects(access.open(aPod('../../etc')), /its uid is/);
});

const source = (one: object) => ({ name: 'v', projected: { sources: [{ configMap: {} }, one] } });
const mounts = [{ name: 'v', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }];
const wishes: Record<string, { spec: Partial<Pod['spec']>; mounted?: boolean; want: boolean }> = {
  'as every pod gets it': { spec: { volumes: [source({ serviceAccountToken: { path: 'token' } })] }, want: true },
  'none was mounted': { spec: {}, want: false },
  'a volume that this container does not have': {
    spec: { volumes: [source({ serviceAccountToken: { path: 'token' } })] },
    mounted: false,
    want: false,
  },
  'a token for somebody else': {
    spec: { volumes: [source({ serviceAccountToken: { path: 'token', audience: 'vault' } })] },
    want: false,
  },
};

for (const [name, { spec, mounted = true, want }] of Object.entries(wishes)) {
  test(`${want ? 'wants' : 'does not want'} a token: ${name}`, () => {
    const containers = [{ name: 'c', image: 'i', ...(mounted && { volumeMounts: mounts }) }];
    assert.equal(wantsToken({ ...aPod(), spec: { ...spec, containers } }), want);
  });
}
