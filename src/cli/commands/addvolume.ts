/** virtctl addvolume */
import { DISK_CACHES, HOTPLUG_BUSES } from '#api/domain/disk.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunOption } from '#cli/parsing/dry-run.ts';
import { CommandError, textFlag } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import {
  sendVolumeVerb,
  persistFlags,
  requireVolumeName,
  volumeNameFlag,
  type VolumeVerb,
} from '#cli/verbs/volume-verb.ts';
import { isApiError } from '#kube/api-error.ts';

const VERB: VolumeVerb = { verb: 'addvolume', gerund: 'adding', word: 'add' };
const MAX_NAME_LENGTH = 63;
/** The longest serial that a disk can show to the guest (domain/disk.ts). */
const MAX_SERIAL_LENGTH = 36;

interface DiskFlags {
  readonly serial: string | undefined;
  readonly cache: string | undefined;
  readonly diskType: string | undefined;
  readonly bus: string | undefined;
}

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
  ].join('\n'),
  flags: {
    volumeName: volumeNameFlag('name of the volume source, a PVC'),
    diskName: textFlag({ name: 'disk-name', help: 'name used in the disk/volume section of spec' }, 'string'),
    serial: textFlag({ name: 'serial', help: 'serial number you want to assign to the disk' }, 'string'),
    cache: textFlag({ name: 'cache', help: `cache of the disk: ${DISK_CACHES.join(', ')}` }, 'string'),
    bus: textFlag({ name: 'bus', help: `bus of the disk: ${HOTPLUG_BUSES.join(', ')}. scsi by default.` }, 'string'),
    diskType: textFlag({ name: 'disk-type', help: 'type of the disk: disk, lun. disk by default.' }, 'string'),
    ...persistFlags,
  },
  args: 1,
  async run({ args: [name = ''], flags: { persist, diskName, ...flags }, connect, print }) {
    const volumeName = requireVolumeName(flags.volumeName);
    const hotplugName = diskName || volumeName;
    checkName(hotplugName, diskName);
    const disk = buildDisk(hotplugName, flags);
    const api = await connect();
    await checkClaimExists(api, volumeName);
    const volumeSource = { persistentVolumeClaim: { claimName: volumeName } };
    const body = { name: hotplugName, disk, volumeSource, ...dryRunOption(flags.dryRun, print) };
    print(await sendVolumeVerb(api, VERB, { name, volumeName, persist }, body));
  },
});

function checkName(name: string, diskName: string | undefined): void {
  if (name.length <= MAX_NAME_LENGTH) return;
  const limit = `must not exceed ${MAX_NAME_LENGTH} characters`;
  if (diskName) throw new CommandError(`Invalid disk name ${name}, ${limit}`);
  const hint = 'Use in conjunction with --disk-name to specify a shorter name';
  throw new CommandError(`Invalid volume name ${name}, ${limit}. ${hint}`);
}

/** Like KubeVirt, uses the name as the serial if it fits and no serial is given. */
function buildDisk(name: string, { serial, cache, diskType = 'disk', bus = 'scsi' }: DiskFlags): object {
  const target = buildDiskTarget(diskType, bus);
  if (cache && !(DISK_CACHES as readonly string[]).includes(cache)) {
    throw new CommandError(`error adding volume, invalid cache value ${cache}`);
  }
  const usual = diskType === 'disk' && name.length <= MAX_SERIAL_LENGTH ? name : '';
  return { ...target, ...(serial || usual ? { serial: serial || usual } : {}), ...(cache ? { cache } : {}) };
}

function buildDiskTarget(diskType: string, bus: string): object {
  switch (diskType) {
    case 'disk':
      if ((HOTPLUG_BUSES as readonly string[]).includes(bus)) return { disk: { bus } };
      throw new CommandError(`Invalid bus type '${bus}' for disk. Only 'scsi' and 'virtio' are supported.`);
    case 'lun':
      if (bus === 'scsi') return { lun: { bus } };
      throw new CommandError(`Invalid bus type '${bus}' for LUN disk. Only 'scsi' bus is supported.`);
    default:
      throw new CommandError(`Invalid disk type '${diskType}'. Only LUN and Disk are supported.`);
  }
}

/** Rejects a wrong claim name immediately instead of when the guest waits for its disk. */
async function checkClaimExists(api: ApiConnection, claim: string): Promise<void> {
  const path = `/api/v1/namespaces/${encodeURIComponent(api.namespace)}/persistentvolumeclaims/${encodeURIComponent(claim)}`;
  try {
    await api.get(path);
  } catch (cause) {
    const missing = isApiError(cause, 'NotFound');
    const why = missing ? `Volume ${claim} is not a DataVolume or PersistentVolumeClaim` : errorMessage(cause);
    throw new CommandError(`error adding volume, ${why}`, { cause });
  }
}
