/** The steps of the tour: what each does, what it may change, and what must be refused. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { exportOvf } from '#cli/commands/export/ovf.ts';
import { historyTable } from '#cli/commands/identity/history.ts';
import { importOvf } from '#cli/commands/import.ts';
import type { VirtctlCommand, CommandContext } from '#cli/command.ts';
import { updateMachineTypes } from '#cli/commands/update/machine-types.ts';
import { removeTransitionJobs } from '#cli/tour/clear-tours.ts';
import { ANY_OTHER, ABSENT, type RequestedChanges } from '#cli/tour/comparison.ts';
import type { TourGuest } from '#cli/tour/guest.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { changesOfImport, changesOfTour, readHistory } from '#cli/tour/history.ts';
import { TourError, captureRefusal, waitFor, type TourApi } from '#cli/tour/tour-api.ts';
import type { TourMachines } from '#cli/tour/machine-types.ts';
import { makeTourDir } from '#cli/tour/own-plane.ts';
import {
  tourClaim,
  DISK_CLAIM,
  editedDomain,
  TOUR_KERNEL,
  MIGRATION,
  PLUGGED,
  RESTORE,
  SNAPSHOT,
  tourVm,
  VM_NAME,
  type TourEdits,
} from '#cli/tour/tour-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { withoutColours } from '#lib/terminal/colour.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';

export interface Scene {
  readonly api: TourApi;
  readonly guest: Pick<TourGuest, 'probe' | 'waitForBoot'>;
  /** The last report of the guest; undefined in the first step. */
  readonly before: GuestReport | undefined;
}

interface StepOutcome {
  /** The new report of the guest. */
  readonly report: GuestReport;
  readonly requested?: RequestedChanges;
  /** Lines to show, such as messages of the API. */
  readonly notes?: readonly string[];
  /** The reason why the step failed although the guest is as expected. */
  readonly problem?: string | undefined;
}

export interface TourStep {
  readonly title: string;
  /** The command that does the same manually. */
  readonly command: string;
  run(scene: Scene): Promise<StepOutcome>;
}

const NEW_BOOT: RequestedChanges = { 'boot id': ANY_OTHER };
const SECRET = 'tour-secret';
const VARIABLE = 'tour-variable';

const VM_DISK_CLAIMS = [DISK_CLAIM, PLUGGED];

export const buildSteps = (machines: TourMachines, edits: TourEdits): readonly TourStep[] => [
  {
    title: 'Create a VM with EFI, a TPM, a disk and an interface',
    command: 'kubectl apply -f examples/tour-vm.yaml',
    async run({ api, guest }) {
      for (const name of VM_DISK_CLAIMS) await api.create(PERSISTENT_VOLUME_CLAIMS, tourClaim(name));
      await api.create(VIRTUAL_MACHINES, tourVm(machines.first));
      return { report: await guest.waitForBoot() };
    },
  },
  {
    title: 'The guest writes a secret into its TPM and a variable into its firmware',
    command: `virtctl console ${VM_NAME}    # then: nvset ${SECRET}, efiset ${VARIABLE}, probe me`,
    async run({ guest }) {
      const report = await guest.probe([`nvset ${SECRET}`, `efiset ${VARIABLE}`]);
      return { report, requested: { 'TPM secret': SECRET, 'EFI variable': VARIABLE } };
    },
  },
  {
    title: 'Restart the VM',
    command: `virtctl restart ${VM_NAME}`,
    async run(scene) {
      return { report: await restartVm(scene), requested: NEW_BOOT };
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
      await waitForDisk({ api, guest }, true);
      return { report: await guest.probe(), requested: { [`disk ${PLUGGED}`]: ANY_OTHER } };
    },
  },
  {
    title: 'Unplug the disk',
    command: `virtctl removevolume ${VM_NAME} --volume-name=${PLUGGED}`,
    async run({ api, guest }) {
      await api.verb(VM_NAME, 'removevolume', { name: PLUGGED });
      await waitForDisk({ api, guest }, false);
      return { report: await guest.probe(), requested: { [`disk ${PLUGGED}`]: ABSENT } };
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
      await api.waitUntil(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, MIGRATION, 'the migration', (migration) => {
        const { phase, migrationState } = migration?.status ?? {};
        if (phase === 'Failed') throw new TourError(`the migration failed: ${migrationState?.failureReason ?? ''}`);
        return phase === 'Succeeded';
      });
      const isOtherNode = (node: string | undefined) => node !== undefined && node !== from;
      await api.waitUntil(VIRTUAL_MACHINE_INSTANCES, VM_NAME, 'the guest to run on the other node', (vmi) =>
        isOtherNode(vmi?.status?.nodeName),
      );
      const to = (await api.find(VIRTUAL_MACHINE_INSTANCES, VM_NAME))?.status?.nodeName ?? '';
      return { report: await guest.probe(), notes: [`migrated from ${from} to ${to} without a reboot`] };
    },
  },
  {
    title: 'Take a snapshot, overwrite the secret in the guest, and restore the snapshot',
    command: `kubectl apply -f examples/tour-snapshot.yaml; ...; virtctl stop ${VM_NAME}; kubectl apply -f examples/tour-restore.yaml; virtctl start ${VM_NAME}`,
    async run({ api, guest, before }) {
      const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: VM_NAME };
      await api.create(VIRTUAL_MACHINE_SNAPSHOTS, { metadata: { name: SNAPSHOT }, spec: { source } });
      await api.waitUntil(
        VIRTUAL_MACHINE_SNAPSHOTS,
        SNAPSHOT,
        'the snapshot',
        (snapshot) => snapshot?.status?.readyToUse === true,
      );
      const { facts } = await guest.probe(['nvset forgotten']);
      if (!facts['tpm.nv']?.startsWith('forgotten')) throw new TourError('the guest could not change its secret');
      await api.verb(VM_NAME, 'stop');
      await api.waitUntil(VIRTUAL_MACHINE_INSTANCES, VM_NAME, 'the guest to stop', (vmi) => vmi === undefined);
      const spec = { target: source, virtualMachineSnapshotName: SNAPSHOT };
      await api.create(VIRTUAL_MACHINE_RESTORES, { metadata: { name: RESTORE }, spec });
      await api.waitUntil(
        VIRTUAL_MACHINE_RESTORES,
        RESTORE,
        'the restore',
        (restore) => restore?.status?.complete === true,
      );
      await api.verb(VM_NAME, 'start');
      const report = await guest.waitForBoot(before?.facts['bootid']);
      return { report, requested: NEW_BOOT, notes: ['before the restore, the secret was "forgotten"'] };
    },
  },
  {
    title: 'Change the firmware UUID, the serial number and the MAC address, and restart the VM',
    command: `kubectl patch vm ${VM_NAME} --type=merge -p '${JSON.stringify(templatePatch(editedDomain(edits)))}'; virtctl restart ${VM_NAME}`,
    async run(scene) {
      await scene.api.patch(VIRTUAL_MACHINES, VM_NAME, templatePatch(editedDomain(edits)));
      const { uuid, serial, macAddress } = edits;
      const pci = scene.before?.nics[0]?.pci ?? '';
      const requested = { 'firmware uuid': uuid, serial, 'interface eth0': `${macAddress} at ${pci}` };
      return { report: await restartVm(scene), requested: { ...NEW_BOOT, ...requested } };
    },
  },
  {
    title: `Let a transition Job change the machine type to ${machines.other} and restart the VM`,
    command: `virtctl update machine-types ${transitionWords(machines).join(' ')} --namespace NAMESPACE`,
    async run({ api, guest, before }) {
      await runVirtctlCommand(api, updateMachineTypes, transitionWords(machines));
      await removeTransitionJobs(api);
      const report = await guest.waitForBoot(before?.facts['bootid']);
      return { report, requested: { ...NEW_BOOT, 'machine type': machines.other } };
    },
  },
  {
    title: 'Protect the VM and try to delete it',
    command: `virtctl protect ${VM_NAME}; kubectl delete vm ${VM_NAME}`,
    async run({ api, guest }) {
      await api.patch(VIRTUAL_MACHINES, VM_NAME, { metadata: { labels: { [PROTECTION_LABEL]: 'true' } } });
      const notes = await expectRefusal('the delete', () => api.remove(VIRTUAL_MACHINES, VM_NAME));
      return { report: await guest.probe(), notes };
    },
  },
  {
    title: 'Try to remove the firmware uuid',
    command: `kubectl patch vm ${VM_NAME} --type=merge -p '{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":null}}}}}}'`,
    async run({ api, guest }) {
      const body = templatePatch({ firmware: { uuid: null } });
      const notes = await expectRefusal('removing the uuid', () => api.patch(VIRTUAL_MACHINES, VM_NAME, body));
      return { report: await guest.probe(), notes };
    },
  },
  {
    title: 'Read the history: it lists every identity change and nothing else',
    command: `virtctl identity history ${VM_NAME}`,
    async run({ api, guest }) {
      const { history, problem } = await readHistory(api, changesOfTour(machines, edits));
      return { report: await guest.probe(), notes: historyTable(history).split('\n'), problem };
    },
  },
  {
    title: 'Export the VM as an OVA, delete it with its disks, and import the OVA',
    command: `virtctl unprotect ${VM_NAME}; virtctl stop ${VM_NAME}; virtctl export ovf ${VM_NAME} --ova ${VM_NAME}.ova; kubectl delete vm,pvc --all; virtctl import ovf ${VM_NAME}.ova; ...; virtctl start ${VM_NAME}`,
    async run(scene) {
      const { api, guest, before } = scene;
      await moveThroughOva(api);
      await api.verb(VM_NAME, 'start');
      const report = await guest.waitForBoot(before?.facts['bootid']);
      const { history, problem } = await readHistory(api, changesOfImport(machines, edits));
      const notes = ['the history of the imported VM begins with the import:', ...historyTable(history).split('\n')];
      return { report, requested: NEW_BOOT, notes, problem };
    },
  },
];

const templatePatch = (domain: object) => ({ spec: { template: { spec: { domain } } } });

const transitionWords = ({ first, other }: TourMachines) => [
  first,
  `--target-machine-type=${other}`,
  '--restart-now',
  '--wait',
];

/** Exports the stopped VM with its disks and its state, deletes all of it, and imports it again. */
async function moveThroughOva(api: TourApi): Promise<void> {
  // The file contains the TPM state, so a killed tour must not leave it behind.
  const dir = await makeTourDir();
  try {
    const file = join(dir, `${VM_NAME}.ova`);
    await api.patch(VIRTUAL_MACHINES, VM_NAME, { metadata: { labels: { [PROTECTION_LABEL]: null } } });
    await api.verb(VM_NAME, 'stop');
    await api.waitUntil(VIRTUAL_MACHINE_INSTANCES, VM_NAME, 'the guest to stop', (vmi) => vmi === undefined);
    await runVirtctlCommand(api, exportOvf, [VM_NAME, '--ova', file]);
    await api.remove(VIRTUAL_MACHINES, VM_NAME);
    await api.waitUntil(VIRTUAL_MACHINES, VM_NAME, 'the VM to be deleted', (vm) => vm === undefined);
    for (const name of VM_DISK_CLAIMS) {
      await api.remove(PERSISTENT_VOLUME_CLAIMS, name);
      await api.waitUntil(
        PERSISTENT_VOLUME_CLAIMS,
        name,
        `claim ${name} to be deleted`,
        (found) => found === undefined,
      );
    }
    await runVirtctlCommand(api, importOvf, [file]);
    // The kernel of the built-in guest belongs to the node, so it is not in the file.
    await api.patch(VIRTUAL_MACHINES, VM_NAME, templatePatch({ firmware: { kernelBoot: TOUR_KERNEL } }));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function restartVm({ api, guest, before }: Scene): Promise<GuestReport> {
  await api.verb(VM_NAME, 'restart');
  return await guest.waitForBoot(before?.facts['bootid']);
}

async function expectRefusal(what: string, attempt: () => Promise<unknown>): Promise<string[]> {
  const message = await captureRefusal(attempt);
  if (message === undefined) throw new TourError(`${what} was not refused`);
  return [`refused: ${message}`];
}

/** Waits until the guest itself sees, or no longer sees, the disk. The state in the API is not sufficient. */
async function waitForDisk({ api, guest }: Omit<Scene, 'before'>, isPresent: boolean): Promise<void> {
  const has = (report: GuestReport) => report.disks.some(({ serial }) => serial === PLUGGED);
  const what = isPresent ? 'the disk to appear in the guest' : 'the disk to disappear from the guest';
  await waitFor(api, what, async () => (has(await guest.probe()) === isPresent ? true : undefined));
}

/**
 * Runs a virtctl command with these words, as a user would type them: in the namespace of the tour, over its connection,
 * without output. Rejects with the error that virtctl would show.
 */
async function runVirtctlCommand(api: TourApi, command: VirtctlCommand, words: readonly string[]): Promise<void> {
  const { connection, namespace, clock } = api;
  const { flags, args } = parseArgs(command.flags, words);
  const discarded = new PassThrough().resume();
  const status = new StatusOutput(discarded, { clock, env: {} });
  const context: CommandContext<unknown> = {
    args,
    flags,
    connect: async () => ({ ...connection, namespace }),
    namespace,
    print: () => {},
    report: status.report,
    paint: withoutColours,
    status,
    terminal: { stdin: new PassThrough(), stdout: discarded, stderr: discarded },
    clock,
    programs: { self: [], platform: process.platform, find: async () => undefined, run: async () => 1 },
    accessArguments: [],
    user: undefined,
    untilInterrupted: () => new Promise(() => {}),
  };
  await command.run(context as CommandContext<never>);
}
