/** Migrations and evictions on the whole API: refusals, defaults, and evictions that must be retried. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVICTION_STRATEGIES } from '#api/kubevirt/kind.ts';
import { aMigration, aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { createEvacuationMarker } from '#plane/components/webhook.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { Loose, TestApi } from '#test/support/test-api.ts';

const GROUP = '/apis/kubevirt.io/v1/namespaces/golden';
const INSTANCES = `${GROUP}/virtualmachineinstances`;
const MIGRATIONS = `${GROUP}/virtualmachineinstancemigrations`;
const PODS = '/api/v1/namespaces/golden/pods';
const SETTINGS = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt';
const MERGE = { contentType: 'application/merge-patch+json' };

let scene: AdmissionScene;
let api: TestApi;

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api } = scene);
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await api.call('POST', '/api/v1/namespaces/golden/serviceaccounts', { body: account });
});
after(() => scene.stop());

let count = 0;

/** Creates an instance that runs on node-1, and its pod. */
async function createRunning({ status = {}, spec = {}, name = `vm-${++count}` }: Loose = {}): Promise<string> {
  const body = aVmi({ metadata: { name }, spec: { volumes: null, domain: { devices: { disks: null } }, ...spec } });
  const { metadata } = await api.ok('POST', INSTANCES, { body });
  const conditions = [{ type: 'LiveMigratable', status: 'True' }];
  const now = { phase: 'Running', nodeName: 'node-1', conditions, ...status };
  await api.ok('PATCH', `${INSTANCES}/${name}/status`, { body: { status: now }, ...MERGE });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `virt-launcher-${name}`,
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': metadata.uid },
      annotations: { 'kubevirt.io/domain': name },
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'compute', image: 'x' }] },
  };
  await api.ok('POST', PODS, { body: pod });
  await api.ok('PATCH', `${PODS}/${pod.metadata.name}/status`, { body: { status: { phase: 'Running' } }, ...MERGE });
  return name;
}

const migrate = (vmiName: string, metadata: object = { name: `m-${++count}` }) =>
  api.call('POST', MIGRATIONS, { body: aMigration({ metadata, spec: { vmiName } }) });

const DENIED = 'admission webhook "validate-virtualmachineinstancemigrations.selfsame.io" denied the request: ';

test('a migration gets a finalizer and the label of its instance, and a second one must wait for its end', async () => {
  const name = await createRunning();
  const { status, body: firstMigration } = await migrate(name, { name: null, generateName: 'kubevirt-migrate-vm-' });
  assert.equal(status, 201, JSON.stringify(firstMigration));
  assert.deepEqual(firstMigration.metadata.finalizers, ['kubevirt.io/migrationJobFinalize']);
  assert.deepEqual(firstMigration.metadata.labels, { 'kubevirt.io/vmi-name': name });
  const secondMigration = await migrate(name);
  assert.equal(secondMigration.status, 400);
  assert.equal(
    secondMigration.body.message,
    `${DENIED}in-flight migration detected. Active migration job (${firstMigration.metadata.uid}) is currently already in progress for VMI ${name}.`,
  );
  const path = `${MIGRATIONS}/${firstMigration.metadata.name}`;
  await api.ok('PATCH', `${path}/status`, { body: { status: { phase: 'Failed' } }, ...MERGE });
  assert.equal((await migrate(name)).status, 201);
});

const refusals: Record<string, { vmi?: Loose; spec?: object; code: number; message: RegExp }> = {
  'of an instance that does not exist': {
    spec: { vmiName: 'nobody' },
    code: 400,
    message: /the VMI "golden\/nobody" does not exist$/,
  },
  'without a name': {
    spec: { vmiName: null },
    code: 422,
    message: /spec\.vmiName: Required value: vmiName is missing$/,
  },
  'with an unknown field': { spec: { fast: 1 }, code: 422, message: /spec\.fast: Forbidden: unknown field$/ },
  'of an instance that has ended': {
    vmi: { status: { phase: 'Succeeded' } },
    code: 400,
    message: /Cannot migrate VMI in finalized state\.$/,
  },
  'of an instance that cannot be migrated': {
    vmi: { status: { conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'R', message: 'M' }] } },
    code: 400,
    message: /Cannot migrate VMI, Reason: R, Message: M$/,
  },
};
for (const [name, { vmi, spec, code, message }] of Object.entries(refusals)) {
  test(`refuses a migration ${name}`, async () => {
    const vmiName = await createRunning(vmi);
    const body = aMigration({ metadata: { name: `m-${++count}` }, spec: { vmiName, ...spec } });
    const answer = await api.call('POST', MIGRATIONS, { body });
    assert.equal(answer.status, code, JSON.stringify(answer.body));
    assert.match(answer.body.message, message);
    assert.ok(answer.body.message.startsWith(DENIED));
  });
}

test('the target of a stored migration cannot change', async () => {
  const { body } = await migrate(await createRunning());
  const path = `${MIGRATIONS}/${body.metadata.name}`;
  const changed = await api.call('PATCH', path, { body: { spec: { vmiName: 'web' } }, ...MERGE });
  assert.equal(changed.status, 422);
  assert.match(changed.body.message, /spec: Forbidden: update of Migration object's spec is restricted$/);
  await api.ok('PATCH', path, { body: { metadata: { finalizers: null } }, ...MERGE });
});

const evict = (name: string, { body = {}, query = '' }: { body?: object; query?: string } = {}) =>
  api.call('POST', `${PODS}/virt-launcher-${name}/eviction${query}`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: `virt-launcher-${name}` }, ...body },
  });
const markOf = async (name: string) => (await api.ok('GET', `${INSTANCES}/${name}`)).status.evacuationNodeName;
const LIVE = { spec: { evictionStrategy: 'LiveMigrate' } };
const EVICTION_DENIED = 'admission webhook "validate-pod-evictions.selfsame.io" denied the request: ';

test('evicting a migratable guest is refused with a retry, and marks the guest for migration', async () => {
  const name = await createRunning(LIVE);
  const { status, body } = await evict(name);
  // kubectl drain retries after this code.
  assert.deepEqual([status, body.code, body.reason], [429, 429, 'TooManyRequests']);
  const triggered = `Eviction triggered evacuation of VMI "golden/${name}"`;
  assert.equal(body.message, EVICTION_DENIED + triggered);
  assert.equal(await markOf(name), 'node-1');
  assert.equal((await evict(name)).body.message, `${EVICTION_DENIED}Evacuation in progress: ${triggered}`);
  const pod = await api.ok('GET', `${PODS}/virt-launcher-${name}`);
  assert.equal(pod.metadata.deletionTimestamp, undefined);
});

test('a dry run, however requested, marks nothing', async () => {
  const name = await createRunning(LIVE);
  assert.equal((await evict(name, { query: '?dryRun=All' })).status, 429);
  assert.equal((await evict(name, { body: { deleteOptions: { dryRun: ['All'] } } })).status, 429);
  assert.equal(await markOf(name), undefined);
});

test('guests without an eviction strategy are evicted, and so are other pods', async () => {
  const name = await createRunning();
  assert.equal((await evict(name)).status, 201);
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'virt-launcher-web' } };
  const spec = { nodeName: 'node-1', containers: [{ name: 'web', image: 'x' }] };
  await api.ok('POST', PODS, { body: { ...body, spec } });
  assert.equal((await evict('web')).status, 201);
});

test('an eviction proceeds if our webhook is not available', async () => {
  const name = await createRunning(LIVE);
  const back = scene.loseWebhook();
  try {
    assert.equal((await evict(name)).status, 201);
  } finally {
    back();
  }
});

test('the settings contain the default for all guests', async () => {
  const configure = async (evictionStrategy: string | null) => {
    await api.ok('PATCH', SETTINGS, { body: { spec: { configuration: { evictionStrategy } } }, ...MERGE });
    await scene.plane.settle();
  };
  await configure('LiveMigrate');
  try {
    const fixed = await createRunning({ status: { conditions: [] } });
    assert.match(
      (await evict(fixed)).body.message,
      /is configured with an eviction strategy but is not live-migratable/,
    );
    assert.equal((await evict(await createRunning({ spec: { evictionStrategy: 'None' } }))).status, 201);
  } finally {
    await configure(null);
  }
});

test('the mark applies to this instance, not to a later one of the same name', async () => {
  const name = await createRunning(LIVE);
  const vmi = await api.ok('GET', `${INSTANCES}/${name}`);
  const mark = createEvacuationMarker(scene.plane.client('selfsame-webhook'));
  await assert.rejects(mark({ ...vmi, metadata: { ...vmi.metadata, uid: 'another' } }, 'node-9'), { code: 422 });
  assert.equal(await markOf(name), undefined);
});

test('VMs, instances and settings accept the same strategies', async () => {
  const requests: Record<string, (evictionStrategy: string) => Promise<{ status: number }>> = {
    VM: (evictionStrategy) =>
      api.call('POST', `${GROUP}/virtualmachines?dryRun=All`, {
        body: aVm({ spec: { template: { spec: { evictionStrategy } } } }),
      }),
    instance: (evictionStrategy) =>
      api.call('POST', `${INSTANCES}?dryRun=All`, { body: aVmi({ spec: { evictionStrategy } }) }),
    settings: (evictionStrategy) =>
      api.call('PATCH', `${SETTINGS}?dryRun=All`, {
        body: { spec: { configuration: { evictionStrategy } } },
        ...MERGE,
      }),
  };
  for (const [name, send] of Object.entries(requests)) {
    for (const strategy of EVICTION_STRATEGIES) assert.ok((await send(strategy)).status < 300, `${name}: ${strategy}`);
    assert.equal((await send('Sometimes')).status, 422, name);
  }
});
