/**
 * A VM on simulated nodes that is migrated: with persistent state, a disk on local storage and one on shared storage.
 * The test writes to all of them, and the invariants check that the latest text is found after each migration.
 */
import assert from 'node:assert/strict';
import {
  INCOMING_NODE_ANNOTATION,
  KUBEVIRT_NAME,
  LEFTOVER_NODE_ANNOTATION,
  SYSTEM_NAMESPACE,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { findStateClaim, STATE_LABEL, stateAnnotationOf } from '#api/storage/persistent-state.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, type VmPlane } from '#test/support/vm-plane.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';

export const VM = 'db';

/** The modes of persistent state, by the storage class of the plane that provides them. */
export const STATE_STORAGES = {
  local: 'Filesystem ReadWriteOnce',
  shared: 'Filesystem ReadWriteMany',
  'local-block': 'Block ReadWriteOnce',
  'shared-block': 'Block ReadWriteMany',
} as const;
export type StateStorageClass = keyof typeof STATE_STORAGES;

/** Starts the VM with its persistent state in a claim of this class. */
export async function startMigratingVm(plane: VmPlane, stateClass: StateStorageClass = 'local'): Promise<void> {
  const settings = `/apis/kubevirt.io/v1/namespaces/${SYSTEM_NAMESPACE}/kubevirts/${KUBEVIRT_NAME}`;
  const body = { spec: { configuration: { vmStateStorageClass: stateClass } } };
  const { status } = await plane.call('PATCH', settings, { body });
  assert.equal(status, 200);
  await plane.beginApply(aClaim('root', { storageClassName: 'local' }));
  await plane.beginApply(aClaim('all', { storageClassName: 'shared', accessModes: ['ReadWriteMany'] }));
  await plane.apply(
    aVm(
      VM,
      { runStrategy: 'Always' },
      {
        domain: {
          memory: { guest: '256Mi' },
          firmware: { bootloader: { efi: { secureBoot: false, persistent: true } }, kernelBoot: KERNEL },
          devices: {
            tpm: { persistent: true },
            disks: ['root', 'all', 'scratch'].map((name) => ({ name, disk: { bus: 'virtio' } })),
          },
        },
        volumes: [
          { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
          { name: 'all', persistentVolumeClaim: { claimName: 'all' } },
          { name: 'scratch', emptyDisk: { capacity: '1Mi' } },
        ],
      },
    ),
  );
}

const KERNEL = { container: { image: 'selfsame/guest' } };

export function aMigration(name: string, vmiName = VM): Loose {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name },
    spec: { vmiName },
  };
}

/** Returns `Succeeded`, `Failed: <reason>`, or the current phase of a migration in progress. */
export async function migrationPhase(plane: VmPlane, name: string): Promise<string> {
  const { status } = (await plane.find('VirtualMachineInstanceMigration', name)) ?? { status: { phase: 'gone' } };
  return status?.phase === 'Failed'
    ? `Failed: ${status.migrationState?.failureReason ?? status.message}`
    : status?.phase;
}

/** Returns the only running guest of the VM and its node. */
export function locateGuest(plane: VmPlane): { readonly node: SimulatedNode; readonly guest: FakeGuest } {
  const found = plane.nodes.flatMap((node) =>
    node
      .livingGuests(`default/${VM}`)
      .filter(({ record }) => record.current.state === 'running')
      .map((guest) => ({ node, guest })),
  );
  assert.equal(found.length, 1, `${found.length} guests run: ${found.map(({ node }) => node.name).join(', ')}`);
  return found[0]!;
}

/** Writes the text to the guest's memory, TPM, EFI variables and disk. */
export async function writeEverywhere(plane: VmPlane, text: string): Promise<void> {
  const { node, guest } = locateGuest(plane);
  guest.setMemory('memory', text);
  guest.writeState('nv', text);
  guest.writeState('efi/Boot', text);
  node.write(await volumeNameOf(plane, 'root'), text);
}

async function volumeNameOf(plane: VmPlane, claim: string): Promise<string> {
  return (await plane.get('PersistentVolumeClaim', claim)).spec.volumeName;
}

export interface InvariantOptions {
  /** The storage class of the claim with the persistent state. */
  readonly stateClass?: StateStorageClass;
  /** True if the guest was restarted meanwhile, so that its memory is lost. */
  readonly restarted?: boolean;
}

/** Asserts all invariants of the VM. Call it only when no migration is in progress. */
export async function assertInvariants(plane: VmPlane, text: string, judgement: InvariantOptions = {}): Promise<void> {
  const { restarted = false, stateClass = 'local' } = judgement;
  const { node, guest } = locateGuest(plane);
  if (!restarted) assert.equal(guest.getMemory('memory'), text, 'its memory is unchanged');
  assert.equal(guest.readState('nv'), text, 'its TPM state is unchanged');
  assert.equal(guest.readState('efi/Boot'), text, 'its EFI variables are unchanged');

  const vmi = await plane.get('VirtualMachineInstance', VM);
  assert.deepEqual(
    [vmi.status.phase, vmi.status.nodeName],
    ['Running', node.name],
    'the instance reports the node of the guest',
  );
  assert.equal(vmi.metadata.labels['kubevirt.io/nodeName'], node.name);
  assert.deepEqual(Object.values(vmi.status.activePods), [node.name]);
  const pods = await plane.list('Pod');
  assert.deepEqual(
    pods.map(({ spec, status }) => [spec.nodeName, status.phase]),
    [[node.name, 'Running']],
    'it has one pod',
  );
  const vm = await plane.get('VirtualMachine', VM);
  assert.equal(vm.status.printableStatus, 'Running');

  const claims = await plane.list('PersistentVolumeClaim');
  const ofState = claims.filter(({ metadata }) => metadata.name.startsWith('persistent-state-for'));
  assert.equal(ofState.length, 1, 'its state has one claim');
  const { uid } = vm.metadata;
  assert.equal(findStateClaim(ofState, { vmName: VM, ownerUid: uid })?.metadata.uid, ofState[0]!.metadata.uid);
  const { metadata } = ofState[0]!;
  assert.deepEqual(vm.status.stateClaim, { name: metadata.name, uid: metadata.uid }, 'the VM names its state claim');
  assert.equal(ofState[0]!.metadata.annotations[stateAnnotationOf(VM)], 'true');
  assert.equal(ofState[0]!.metadata.labels[STATE_LABEL], VM);
  const { storageClassName, volumeMode, accessModes } = ofState[0]!.spec;
  const modes = `${volumeMode} ${accessModes.join()}`;
  assert.deepEqual(
    [storageClassName, modes],
    [stateClass, STATE_STORAGES[stateClass]],
    'it has class ${stateClass} and its modes',
  );
  for (const { metadata, spec } of await plane.list('PersistentVolume')) {
    const { annotations } = metadata;
    assert.equal(annotations[INCOMING_NODE_ANNOTATION], undefined, `${spec.claimRef.name} is not being moved`);
    assert.equal(annotations[LEFTOVER_NODE_ANNOTATION], undefined, `no leftover of ${spec.claimRef.name} remains`);
    const home = annotations[VOLUME_NODE_ANNOTATION];
    if (home !== undefined) assert.equal(home, node.name, `${spec.claimRef.name} is on the node of the guest`);
  }
  const root = await volumeNameOf(plane, 'root');
  for (const candidate of plane.nodes) {
    assert.equal(
      candidate.disks.own.contents.get(root),
      candidate === node ? text : undefined,
      `the disk on ${candidate.name}`,
    );
  }
}
