/** Snapshots, restores and simulated disks, for tests on the whole plane. */
import assert from 'node:assert/strict';
import type { Loose } from '#test/support/test-api.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const VERSION = 'snapshot.kubevirt.io/v1beta1';
const vmNamed = (name: string) => ({ apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name });

export function aSnapshot(name: string, vm: string, spec: Loose = {}): Loose {
  const kind = 'VirtualMachineSnapshot';
  return { apiVersion: VERSION, kind, metadata: { name }, spec: { source: vmNamed(vm), ...spec } };
}

export function aRestore(name: string, vm: string, virtualMachineSnapshotName: string, spec: Loose = {}): Loose {
  const kind = 'VirtualMachineRestore';
  return {
    apiVersion: VERSION,
    kind,
    metadata: { name },
    spec: { target: vmNamed(vm), virtualMachineSnapshotName, ...spec },
  };
}

/** The content of a snapshot, and where it is. */
export async function contentOf(plane: VmPlane, snapshot: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineSnapshot', snapshot);
  const name = status.virtualMachineSnapshotContentName;
  const url = `/apis/${VERSION}/namespaces/default/virtualmachinesnapshotcontents/${name}`;
  return { ...(await plane.get('VirtualMachineSnapshotContent', name)), url };
}

/** What is on the disk `root` of the VM. */
export async function diskOf(plane: VmPlane, vm: string): Promise<string> {
  const { node, volume } = await rootOf(plane, vm);
  return node.read(volume) ?? '';
}

export async function writeDisk(plane: VmPlane, vm: string, text: string): Promise<void> {
  const { node, volume } = await rootOf(plane, vm);
  node.write(volume, text);
}

async function rootOf(plane: VmPlane, vm: string): Promise<{ node: SimulatedNode; volume: string }> {
  const { spec } = await plane.get('VirtualMachine', vm);
  const root = spec.template.spec.volumes.find(({ name }: Loose) => name === 'root');
  const claim = await plane.get('PersistentVolumeClaim', root.persistentVolumeClaim.claimName);
  const { volumeName } = claim.spec;
  assert.ok(volumeName !== undefined, `the claim of ${vm} has no volume`);
  const volume = await plane.get('PersistentVolume', volumeName);
  const home = volume.metadata.annotations['selfsame.io/volume-node'] ?? plane.nodes[0]!.name;
  return { node: plane.node(home), volume: volumeName };
}
