/** Tests the controller as a whole: its sources, its metric and its Events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { restoreController } from '#controllers/restore/restore-controller.ts';
import { aContent, aRestore, aSnapshot, aVolumeSnapshot } from '#controllers/restore/testing/restore-world.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import type { KubeObject } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import { createLog } from '#lib/log.ts';
import type { EventNote } from '#runtime/events.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';

const KINDS = [
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_IDENTITIES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
  VOLUME_SNAPSHOTS,
];

test('each awaited object triggers a reconcile; a legacy uuid is counted once, and the VM gets the Event', async () => {
  const api = new FakeApi();
  const { client } = new FakeLink(api, KINDS);
  const clock = new FakeClock();
  const log = createLog('error', { write: () => undefined });
  const abort = new AbortController();
  const { signal } = abort;
  const recorded: string[] = [];
  const events = { record: ({ kind }: KubeObject, { reason }: EventNote) => void recorded.push(`${kind} ${reason}`) };
  const metrics = new MetricRegistry();
  const informers = new SharedInformers({ reader: client, clock, log, signal });
  const informer: typeof informers.of = (type) => informers.of(type);
  const [running] = restoreController.start({ client, informer, clock, log, events, metrics, signal });
  await running?.idle();

  const { resourceVersion: _, finalizers: _finalizers, ...metadata } = aRestore().metadata;
  api.put(VIRTUAL_MACHINE_RESTORES, { ...aRestore(), metadata });
  await settle();
  const message = () => {
    const { conditions = [] } = api.peek(VIRTUAL_MACHINE_RESTORES, 'ns/back')?.status ?? {};
    return conditions.find(({ type }) => type === 'Progressing')?.message;
  };
  assert.equal(message(), 'VirtualMachineSnapshot before does not exist');

  api.put(VIRTUAL_MACHINE_SNAPSHOTS, unversioned(aSnapshot()));
  await settle();
  assert.equal(message(), 'the content of VirtualMachineSnapshot before does not exist');

  api.put(VOLUME_SNAPSHOTS, unversioned(aVolumeSnapshot()));
  await settle();
  api.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, unversioned(aContent({ vm: { firmware: {} }, identity: 'none' })));
  await settle();
  const [claim] = api.all(PERSISTENT_VOLUME_CLAIMS);
  assert.ok(claim !== undefined);
  assert.equal(message(), `Waiting for new PVCs: ${claim.metadata.name}`);

  const { name, namespace, uid } = claim.metadata;
  const spec = { capacity: {}, accessModes: [], claimRef: { name, namespace, uid } };
  api.update(PERSISTENT_VOLUME_CLAIMS, { ...claim, status: { phase: 'Bound' } }, { subresource: 'status' });
  await settle();
  assert.equal(api.all(VIRTUAL_MACHINES).length, 0, 'the volume does not exist yet');
  api.put(PERSISTENT_VOLUMES, { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec });
  await settle();
  assert.equal(message(), 'Operation complete');

  assert.match(metrics.text(), /^selfsame_legacy_firmware_uuid_total\{use="restore"\} 1$/m);
  const lastTwo = (kind: string) => recorded.filter((entry) => entry.startsWith(`${kind} `)).slice(-2);
  for (const kind of ['VirtualMachine', 'VirtualMachineRestore'])
    assert.deepEqual(lastTwo(kind), [`${kind} VirtualMachineRestoreComplete`, `${kind} RestoredClaimsOwned`]);
  abort.abort();
  await running?.stopped;
});

function unversioned<T extends KubeObject>(object: T): T {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
