/** Migrations of real guests through the whole program, and reads what a migrated guest must find again. */
import assert from 'node:assert/strict';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import type { GuestPlane } from '#test/support/real-guests.ts';

const namespace = 'default';

export async function startMigration(plane: GuestPlane, vmiName: string): Promise<string> {
  const { metadata } = await plane.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { generateName: `${vmiName}-`, namespace },
    spec: { vmiName },
  });
  return metadata.name;
}

export async function awaitMigration(
  plane: GuestPlane,
  name: string,
): Promise<Stored<VirtualMachineInstanceMigration> | undefined> {
  return await plane.awaitObject(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, name, (migration) =>
    ['Succeeded', 'Failed'].includes(migration?.status?.phase ?? ''),
  );
}

/** Migrates the guest and waits until it runs on another node. */
export async function migrate(plane: GuestPlane, vmiName: string): Promise<Stored<VirtualMachineInstanceMigration>> {
  const guest = plane.guest(vmiName);
  const before = (await guest.vmi()).status?.nodeName;
  const migration = await awaitMigration(plane, await startMigration(plane, vmiName));
  assert.equal(migration?.status?.phase, 'Succeeded', JSON.stringify(migration?.status));
  await guest.awaitVmi(
    'it is elsewhere',
    (vmi) => vmi?.status?.nodeName !== before && vmi?.status?.phase === 'Running',
  );
  return migration;
}

let probeCount = 0;

/** Returns what the guest sees now. */
export async function probe(plane: GuestPlane, name: string, commands: readonly string[] = []): Promise<GuestReport> {
  const tag = `look${++probeCount}`;
  const output = await plane
    .guest(name)
    .runCommand([...commands, `probe ${tag}`].join('\n'), new RegExp(`GUEST END ${tag}`));
  return lastReport(output, tag) ?? assert.fail(`no report in ${output}`);
}

/** Returns the part of a report that stays the same until the guest is restarted. */
export function stableFacts({ facts, pci, disks, nics }: GuestReport) {
  const { memory: _, BEGIN: __, ...rest } = facts;
  return { facts: rest, pci, disks, nics };
}

export async function readDisk(plane: GuestPlane, name: string, disk: string): Promise<string> {
  const output = await plane.guest(name).runCommand(`read ${disk}`, new RegExp(`GUEST read ${disk} \\S+`));
  return new RegExp(`GUEST read ${disk} (\\S+)`).exec(output)?.[1] ?? '';
}
