/** virtctl addvolume and removevolume: plug and unplug disks of running machines. */
import { DISK_CACHES, HOTPLUG_BUSES } from '#api/domain/disk.ts';
import { isFinal, VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { defineCommand } from '#cli/command.ts';
import { warnIfMounted } from '#cli/commands/mounted-volume.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { findObject, readObject } from '#cli/connection/vm-objects.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { judgePlugged, judgeUnplugged } from '#cli/wait/volume-state.ts';
import { GUEST_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import { waitUntil } from '#cli/wait/wait-until.ts';
import { isApiError } from '#kube/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { requiredFlag, switchFlag, textFlag } from '#lib/command-line/flag.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

const MAX_NAME_LENGTH = 63;
/** The longest serial that a disk can show to the guest (domain/disk.ts). */
const MAX_SERIAL_LENGTH = 36;

const persistFlags = {
  persist: switchFlag({
    name: 'persist',
    help: 'if set, change the VM, so that the change survives a restart; otherwise change only the running instance',
  }),
  dryRun: dryRunFlag,
};

const volumeNameFlag = (help: string) => requiredFlag({ name: 'volume-name', help }, 'string');

interface VolumeVerb {
  readonly verb: 'addvolume' | 'removevolume';
  /** Used in `Cannot <word> volume` and `submitted <word> volume request`. */
  readonly word: 'add' | 'remove';
  /** Used in `Cannot <word> volume data <preposition> VM db`. */
  readonly preposition: 'to' | 'from';
  /** The state that --wait waits for: "volume data is <goal>". */
  readonly goal: 'plugged in' | 'unplugged';
  readonly judge: typeof judgePlugged;
}

const ADD: VolumeVerb = {
  verb: 'addvolume',
  word: 'add',
  preposition: 'to',
  goal: 'plugged in',
  judge: judgePlugged,
};
const REMOVE: VolumeVerb = {
  verb: 'removevolume',
  word: 'remove',
  preposition: 'from',
  goal: 'unplugged',
  judge: judgeUnplugged,
};

export const addVolume = defineCommand({
  name: 'addvolume',
  usage: 'VMI',
  summary: 'Add a volume to a running VM.',
  details: 'The volume is a PersistentVolumeClaim in the namespace of the VM.',
  example: [
    '  # Plug a volume into a running VM, with a serial number to find it by inside the guest:',
    '  virtctl addvolume myvm --volume-name=mydisk --serial=1234567890',
    '',
    '  # Plug it in and also add it to the spec of the VM, so that it is there at the next start:',
    '  virtctl addvolume myvm --volume-name=mydisk --persist',
    '',
    '  # Use a different name in the spec and a different bus:',
    '  virtctl addvolume myvm --volume-name=mydisk --disk-name=data --bus=virtio',
    '',
    '  # Wait until the guest has the disk:',
    '  virtctl addvolume myvm --volume-name=mydisk --wait',
  ].join('\n'),
  flags: {
    volumeName: volumeNameFlag('name of the volume source, a PVC'),
    diskName: textFlag({ name: 'disk-name', help: 'name used in the disk/volume section of spec' }, 'string'),
    serial: textFlag({ name: 'serial', help: 'serial number you want to assign to the disk' }, 'string'),
    cache: textFlag({ name: 'cache', help: `cache of the disk: ${DISK_CACHES.join(', ')}` }, 'string'),
    bus: textFlag({ name: 'bus', help: `bus of the disk: ${HOTPLUG_BUSES.join(', ')}. scsi by default.` }, 'string'),
    diskType: textFlag({ name: 'disk-type', help: 'type of the disk: disk, lun. disk by default.' }, 'string'),
    ...persistFlags,
    ...waitFlags('the disk is plugged in', GUEST_TIMEOUT),
  },
  args: 1,
  async run({ args: [name = ''], flags: { persist, diskName, ...flags }, connect, print, status }) {
    const { volumeName } = flags;
    const limitMs = waitLimitMs(flags, GUEST_TIMEOUT);
    const hotplugName = diskName || volumeName;
    checkName(hotplugName, diskName);
    const disk = buildDisk(hotplugName, flags);
    const api = await connect();
    // A wrong name of a claim is refused at once, instead of when the guest waits for its disk.
    await explainFailure(problemOf(ADD, volumeName, name), checkClaim(api, volumeName));
    const volumeSource = { persistentVolumeClaim: { claimName: volumeName } };
    const body = { name: hotplugName, disk, volumeSource, ...dryRunOption(flags.dryRun, print) };
    print(await sendVolumeVerb(api, ADD, { name, volumeName, persist }, body));
    if (limitMs === undefined || flags.dryRun) return;
    print(await waitForVolume(api, ADD, { name, volume: hotplugName, limitMs }, status));
  },
});

export const removeVolume = defineCommand({
  name: 'removevolume',
  usage: 'VMI',
  summary: 'Remove a volume from a running VM.',
  details: 'Warns if the guest has a file system of the volume mounted and its guest agent reports that.',
  example: [
    '  # Remove a volume that was plugged into a running VM:',
    '  virtctl removevolume myvm --volume-name=mydisk',
    '',
    '  # Remove a volume from the spec of the VM, and from the VM while it runs:',
    '  virtctl removevolume myvm --volume-name=mydisk --persist',
    '',
    '  # Wait until the guest has released the disk:',
    '  virtctl removevolume myvm --volume-name=mydisk --wait',
  ].join('\n'),
  flags: {
    volumeName: volumeNameFlag('name used in volumes section of spec'),
    ...persistFlags,
    ...waitFlags('the guest has released the disk', GUEST_TIMEOUT),
  },
  args: 1,
  async run({ args: [name = ''], flags: { persist, ...flags }, connect, print, report, status }) {
    const { volumeName } = flags;
    const limitMs = waitLimitMs(flags, GUEST_TIMEOUT);
    const api = await connect();
    await explainFailure(problemOf(REMOVE, volumeName, name), warnIfMounted(api, name, volumeName, report));
    const body = { name: volumeName, ...dryRunOption(flags.dryRun, print) };
    print(await sendVolumeVerb(api, REMOVE, { name, volumeName, persist }, body));
    if (limitMs === undefined || flags.dryRun) return;
    print(await waitForVolume(api, REMOVE, { name, volume: volumeName, limitMs }, status));
  },
});

/** Throws if the claim does not exist. Does nothing if the user may not read claims: the verb does not require that. */
async function checkClaim(api: ApiConnection, name: string): Promise<void> {
  try {
    await readObject(api, PERSISTENT_VOLUME_CLAIMS, name);
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
  }
}

/** Sends the request and returns the message of success. Throws CommandError. */
async function sendVolumeVerb(
  api: ApiConnection,
  volumeVerb: VolumeVerb,
  { name, volumeName, persist }: { readonly name: string; readonly volumeName: string; readonly persist: boolean },
  body: object,
): Promise<string> {
  const { verb, word } = volumeVerb;
  const kind = persist ? 'virtualmachines' : 'virtualmachineinstances';
  const sending = api.put(verbPath(kind, api.namespace, name, verb), body);
  await explainFailure(problemOf(volumeVerb, volumeName, name), sending);
  return `Successfully submitted ${word} volume request to VM ${name} for volume ${volumeName}`;
}

/** Returns the beginning of an error message. */
function problemOf({ word, preposition }: VolumeVerb, volume: string, vm: string): string {
  return `Cannot ${word} volume ${volume} ${preposition} VM ${vm}: `;
}

interface VolumeWait {
  readonly name: string;
  /** The name in the spec. */
  readonly volume: string;
  readonly limitMs: number;
}

/** Waits for the guest and returns the result. A VM that does not run gets the change at its next start. */
async function waitForVolume(
  api: ApiConnection,
  { goal, judge }: VolumeVerb,
  { name, volume, limitMs }: VolumeWait,
  status: StatusOutput,
): Promise<string> {
  const readVmi = () => findObject(api, VIRTUAL_MACHINE_INSTANCES, name);
  const first = await readVmi();
  if (first === undefined || isFinal(first)) {
    return `VM ${name} is not running; the change takes effect at its next start`;
  }
  const wait = {
    limitMs,
    problem: `Cannot confirm that volume ${volume} of VM ${name} is ${goal}`,
    advice: `the request remains in effect, see kubectl describe vmi ${name}`,
    read: async () => judge({ vm: name, volume, vmi: await readVmi() }),
  };
  return await waitUntil(wait, status);
}

interface DiskFlags {
  readonly serial: string | undefined;
  readonly cache: string | undefined;
  readonly diskType: string | undefined;
  readonly bus: string | undefined;
}

function checkName(name: string, diskName: string | undefined): void {
  if (name.length <= MAX_NAME_LENGTH) return;
  const limit = `must not exceed ${MAX_NAME_LENGTH} characters`;
  if (diskName) throw new UsageError(`Invalid disk name ${name}, ${limit}`);
  const hint = 'Use in conjunction with --disk-name to specify a shorter name';
  throw new UsageError(`Invalid volume name ${name}, ${limit}. ${hint}`);
}

/** Like KubeVirt, uses the name as the serial if it fits and no serial is given. */
function buildDisk(name: string, { serial, cache, diskType = 'disk', bus = 'scsi' }: DiskFlags): object {
  const target = buildDiskTarget(diskType, bus);
  if (cache && !(DISK_CACHES as readonly string[]).includes(cache)) {
    throw new UsageError(`invalid cache ${JSON.stringify(cache)}; expected ${DISK_CACHES.join(', ')}`);
  }
  const usual = diskType === 'disk' && name.length <= MAX_SERIAL_LENGTH ? name : '';
  return { ...target, ...(serial || usual ? { serial: serial || usual } : {}), ...(cache ? { cache } : {}) };
}

function buildDiskTarget(diskType: string, bus: string): object {
  switch (diskType) {
    case 'disk':
      if ((HOTPLUG_BUSES as readonly string[]).includes(bus)) return { disk: { bus } };
      throw new UsageError(`Invalid bus type '${bus}' for disk. Only 'scsi' and 'virtio' are supported.`);
    case 'lun':
      if (bus === 'scsi') return { lun: { bus } };
      throw new UsageError(`Invalid bus type '${bus}' for LUN disk. Only 'scsi' bus is supported.`);
    default:
      throw new UsageError(`Invalid disk type '${diskType}'. Only LUN and Disk are supported.`);
  }
}
