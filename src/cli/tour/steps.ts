/** The steps of the tour: what each does, what it may change, and what must be refused. */
import { PROTECTION_LABEL } from '#api/delete-protection.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { historyTable } from '#cli/commands/identity-history.ts';
import { ANOTHER, GONE, type Decided } from '#cli/tour/comparison.ts';
import type { TourGuest } from '#cli/tour/guest.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { completeHistory } from '#cli/tour/history.ts';
import { refusalOf, waitFor, type TourApi } from '#cli/tour/tour-api.ts';
import { TourError } from '#cli/tour/tour-error.ts';
import type { TourMachines } from '#cli/tour/machine-types.ts';
import {
  claim,
  DISK_CLAIM,
  MIGRATION,
  PLUGGED,
  RESTORE,
  SERIAL,
  SNAPSHOT,
  tourVm,
  VM_NAME,
} from '#cli/tour/tour-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';

export interface Scene {
  readonly api: TourApi;
  readonly guest: Pick<TourGuest, 'boots' | 'sees'>;
  /** What the guest saw last; of the first step nothing. */
  readonly before: GuestReport | undefined;
}

export interface Outcome {
  /** What the guest sees now. */
  readonly report: GuestReport;
  readonly decided?: Decided;
  /** Lines to show: what the API said. */
  readonly said?: readonly string[];
}

export interface Step {
  readonly title: string;
  /** The same by hand. */
  readonly command: string;
  run(scene: Scene): Promise<Outcome>;
}

const NEW_BOOT: Decided = { 'boot id': ANOTHER };
const SECRET = 'tour-secret';
const VARIABLE = 'tour-variable';

export const stepsWith = ({ first, other }: TourMachines): readonly Step[] => [
  {
    title: 'Create a VM with EFI, a TPM, a disk and an interface',
    command: 'kubectl apply -f examples/tour-vm.yaml',
    async run({ api, guest }) {
      for (const name of [DISK_CLAIM, PLUGGED]) await api.create(PERSISTENT_VOLUME_CLAIMS, claim(name));
      await api.create(VIRTUAL_MACHINES, tourVm(first));
      return { report: await guest.boots() };
    },
  },
  {
    title: 'The guest writes a secret into its TPM and a variable into its firmware',
    command: `virtctl console ${VM_NAME}    # then: nvset ${SECRET}, efiset ${VARIABLE}, probe me`,
    async run({ guest }) {
      const report = await guest.sees([`nvset ${SECRET}`, `efiset ${VARIABLE}`]);
      return { report, decided: { 'TPM secret': SECRET, 'EFI variable': VARIABLE } };
    },
  },
  {
    title: 'Restart the VM',
    command: `virtctl restart ${VM_NAME}`,
    async run(scene) {
      return { report: await restarted(scene), decided: NEW_BOOT };
    },
  },
  {
    title: 'Hot-plug a disk',
    command: `virtctl addvolume ${VM_NAME} --volume-name=${PLUGGED}`,
    async run({ api, guest }) {
      const volumeSource = { persistentVolumeClaim: { claimName: PLUGGED } };
      await api.verb(VM_NAME, 'addvolume', {
        name: PLUGGED,
        disk: { name: PLUGGED, serial: PLUGGED, disk: { bus: 'scsi' } },
        volumeSource,
      });
      await untilDisk({ api, guest }, true);
      return { report: await guest.sees(), decided: { [`disk ${PLUGGED}`]: ANOTHER } };
    },
  },
  {
    title: 'Unplug the disk',
    command: `virtctl removevolume ${VM_NAME} --volume-name=${PLUGGED}`,
    async run({ api, guest }) {
      await api.verb(VM_NAME, 'removevolume', { name: PLUGGED });
      await untilDisk({ api, guest }, false);
      return { report: await guest.sees(), decided: { [`disk ${PLUGGED}`]: GONE } };
    },
  },
  {
    title: 'Live-migrate the VM to another node',
    command: `virtctl migrate ${VM_NAME}`,
    async run({ api, guest }) {
      const from = (await api.find(VIRTUAL_MACHINE_INSTANCES, VM_NAME))?.status?.nodeName ?? '';
      await api.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        metadata: { name: MIGRATION },
        spec: { vmiName: VM_NAME },
      });
      await api.until(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, MIGRATION, 'the migration', (migration) => {
        const { phase, migrationState } = migration?.status ?? {};
        if (phase === 'Failed') throw new TourError(`the migration failed: ${migrationState?.failureReason ?? ''}`);
        return phase === 'Succeeded';
      });
      const elsewhere = (node: string | undefined) => node !== undefined && node !== from;
      await api.until(VIRTUAL_MACHINE_INSTANCES, VM_NAME, 'the guest to run on the other node', (vmi) =>
        elsewhere(vmi?.status?.nodeName),
      );
      const to = (await api.find(VIRTUAL_MACHINE_INSTANCES, VM_NAME))?.status?.nodeName ?? '';
      return { report: await guest.sees(), said: [`migrated from ${from} to ${to} without a reboot`] };
    },
  },
  {
    title: 'Take a snapshot, overwrite the secret in the guest, and restore the snapshot',
    command: `kubectl apply -f examples/tour-snapshot.yaml; ...; virtctl stop ${VM_NAME}; kubectl apply -f examples/tour-restore.yaml; virtctl start ${VM_NAME}`,
    async run({ api, guest, before }) {
      const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: VM_NAME };
      await api.create(VIRTUAL_MACHINE_SNAPSHOTS, { metadata: { name: SNAPSHOT }, spec: { source } });
      await api.until(
        VIRTUAL_MACHINE_SNAPSHOTS,
        SNAPSHOT,
        'the snapshot',
        (snapshot) => snapshot?.status?.readyToUse === true,
      );
      const { facts } = await guest.sees(['nvset forgotten']);
      if (!facts['tpm.nv']?.startsWith('forgotten')) throw new TourError('the guest could not change its secret');
      await api.verb(VM_NAME, 'stop');
      await api.until(VIRTUAL_MACHINE_INSTANCES, VM_NAME, 'the guest to stop', (vmi) => vmi === undefined);
      const spec = { target: source, virtualMachineSnapshotName: SNAPSHOT };
      await api.create(VIRTUAL_MACHINE_RESTORES, { metadata: { name: RESTORE }, spec });
      await api.until(
        VIRTUAL_MACHINE_RESTORES,
        RESTORE,
        'the restore',
        (restore) => restore?.status?.complete === true,
      );
      await api.verb(VM_NAME, 'start');
      const report = await guest.boots(before?.facts['bootid']);
      return { report, decided: NEW_BOOT, said: ['before the restore, the secret was "forgotten"'] };
    },
  },
  {
    title: `Change the machine type to ${other} and the serial number, and restart the VM`,
    command: `kubectl patch vm ${VM_NAME} --type=merge -p '{"spec":{"template":{"spec":{"domain":{"machine":{"type":"${other}"},"firmware":{"serial":"${SERIAL}"}}}}}}'; virtctl restart ${VM_NAME}`,
    async run(scene) {
      const domain = { machine: { type: other }, firmware: { serial: SERIAL } };
      await scene.api.patch(VIRTUAL_MACHINES, VM_NAME, { spec: { template: { spec: { domain } } } });
      return { report: await restarted(scene), decided: { ...NEW_BOOT, 'machine type': other, serial: SERIAL } };
    },
  },
  {
    title: 'Protect the VM and try to delete it',
    command: `virtctl protect ${VM_NAME}; kubectl delete vm ${VM_NAME}`,
    async run({ api, guest }) {
      await api.patch(VIRTUAL_MACHINES, VM_NAME, { metadata: { labels: { [PROTECTION_LABEL]: 'true' } } });
      const said = await mustBeRefused('the delete', () => api.remove(VIRTUAL_MACHINES, VM_NAME));
      return { report: await guest.sees(), said };
    },
  },
  {
    title: 'Try to remove the firmware uuid',
    command: `kubectl patch vm ${VM_NAME} --type=merge -p '{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":null}}}}}}'`,
    async run({ api, guest }) {
      const body = { spec: { template: { spec: { domain: { firmware: { uuid: null } } } } } };
      const said = await mustBeRefused('removing the uuid', () => api.patch(VIRTUAL_MACHINES, VM_NAME, body));
      return { report: await guest.sees(), said };
    },
  },
  {
    title: 'Read the history: it lists every identity change and nothing else',
    command: `virtctl identity history ${VM_NAME}`,
    async run({ api, guest }) {
      const history = await completeHistory(api, { first, other });
      return { report: await guest.sees(), said: historyTable(history).split('\n') };
    },
  },
];

async function restarted({ api, guest, before }: Scene): Promise<GuestReport> {
  await api.verb(VM_NAME, 'restart');
  return await guest.boots(before?.facts['bootid']);
}

async function mustBeRefused(what: string, attempt: () => Promise<unknown>): Promise<string[]> {
  const said = await refusalOf(attempt);
  if (said === undefined) throw new TourError(`${what} was not refused`);
  return [`refused: ${said}`];
}

/** In the guest itself: that the API has it says nothing yet. */
async function untilDisk({ api, guest }: Omit<Scene, 'before'>, there: boolean): Promise<void> {
  const has = (report: GuestReport) => report.disks.some(({ serial }) => serial === PLUGGED);
  const what = there ? 'the disk to appear in the guest' : 'the disk to disappear from the guest';
  await waitFor(api, what, async () => (has(await guest.sees()) === there ? true : undefined));
}
