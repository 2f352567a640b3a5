/** The rules for the keys of a device, by its type. Pure. */
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import {
  checkKeys,
  isBlank,
  isDisabled,
  isBlankOrOneOf,
  readMapAt,
  mergeFindings,
  NO_FINDINGS,
  notedKeys,
  refusedKeys,
  reportedKeys,
  usedKeys,
  type KeyFindings,
  type KeyRules,
} from '#node/host-api/sent/key-rules.ts';
import { quoteSentValue, readWholeNumber } from '#node/host-api/sent/sent-values.ts';

interface DeviceRules {
  readonly keys: KeyRules;
  readonly params: KeyRules;
}

const COMMON: KeyRules = {
  ...usedKeys('type', 'deviceType', 'device', 'deviceId', 'address', 'specParams', 'managed', 'name'),
  ...reportedKeys('alias'),
};
const READONLY_NOTE = notedKeys('the device is never read-only', ['readonly'], isDisabled);
const BOOT_ORDER_NOTE = notedKeys('guests do not boot from it', ['bootOrder'], (value) => !readWholeNumber(value));
const NO_LIMITS = 'this host does not limit single devices';
const REPORTED_DISK = ['apparentsize', 'truesize', 'reqsize', 'volumeChain', 'volumeInfo', 'baseVolumeID', 'blockDev'];
const NO_MIRRORING = 'this host does not mirror ports; leave it out';
const FILE_OR_LUN = 'expected a disk in a file, or a LUN of this host';

const isBlankOr = (word: string) => isBlankOrOneOf(word);

/** Keyed by device type. Devices of other types are left out, with a note. */
const RULES_BY_TYPE: Readonly<Record<string, DeviceRules>> = {
  disk: {
    keys: {
      ...usedKeys('iface', 'index', 'path', 'format', 'readonly', 'optional', 'shared', 'serial', 'bootOrder'),
      ...usedKeys('poolID', 'domainID', 'imageID', 'volumeID', 'GUID', 'UUID', 'propagateErrors'),
      ...notedKeys('hosts report it; it cannot be set', REPORTED_DISK),
      ...notedKeys('the index identifies a disk', ['bus']),
      ...notedKeys('SCSI commands are passed to the LUN unfiltered', ['sgio']),
      ...notedKeys('discards of the guest are always applied', ['discard']),
      ...refusedKeys(FILE_OR_LUN, ['diskType'], isBlankOrOneOf('file', 'block')),
      ...refusedKeys(FILE_OR_LUN, ['hosts', 'protocol', 'auth']),
    },
    params: {
      ...usedKeys('bus'),
      ...notedKeys(NO_LIMITS, ['ioTune']),
      ...notedKeys('threads are not pinned', ['pinToIoThread']),
      ...refusedKeys('this host does not create discs; send a disk with this content', ['vmPayload']),
      ...refusedKeys('expected it in the device, not in specParams', ['path']),
    },
  },
  interface: {
    keys: {
      ...usedKeys('nicModel', 'macAddr', 'network', 'linkActive', 'bootOrder'),
      ...notedKeys('traffic is not filtered', ['filter', 'filterParameters']),
      ...notedKeys('it is for hooks, and this host runs none', ['custom']),
      ...refusedKeys(NO_MIRRORING, ['portMirroring']),
      ...READONLY_NOTE,
    },
    params: {
      ...notedKeys(NO_LIMITS, ['inbound', 'outbound']),
      ...refusedKeys(NO_MIRRORING, ['promisc'], isBlankOrOneOf('none', 'false')),
    },
  },
  controller: {
    keys: {
      ...usedKeys('model'),
      ...notedKeys('the address identifies a controller', ['index'], isBlankOr('0')),
      ...notedKeys('each function is a separate controller', ['master']),
    },
    params: {
      ...usedKeys('model', 'index'),
      ...notedKeys('threads are not pinned', ['ioThreadId']),
      ...notedKeys('QEMU decides the number of ports', ['ports', 'vectors']),
    },
  },
  video: {
    keys: {},
    params: {
      ...notedKeys('QEMU decides the size of the video memory', ['vram', 'ram', 'vgamem']),
      ...notedKeys('a card has one monitor', ['heads'], isBlankOr('1')),
    },
  },
  sound: { keys: {}, params: {} },
  balloon: { keys: {}, params: usedKeys('model') },
  watchdog: {
    keys: usedKeys('model'),
    params: {
      ...usedKeys('model'),
      ...notedKeys('the watchdog always resets the guest', ['action'], isBlankOr('reset')),
    },
  },
  rng: {
    keys: notedKeys('it is a virtio device', ['model'], isBlankOr('virtio')),
    params: {
      ...notedKeys("the source is always the host's urandom", ['source'], isBlankOr('urandom')),
      ...notedKeys(NO_LIMITS, ['bytes', 'period']),
    },
  },
  tpm: {
    keys: {},
    params: {
      ...notedKeys('it is an emulated TPM with a CRB interface', ['model'], isBlankOrOneOf('tpm-crb', 'crb')),
      ...refusedKeys('expected an emulated TPM', ['mode'], isBlankOr('emulator')),
      ...refusedKeys('expected an emulated TPM', ['path']),
    },
  },
  console: {
    keys: {},
    params: {
      ...notedKeys('it is a serial console', ['consoleType'], isBlankOr('serial')),
      ...notedKeys('it is only accessible with virtctl', ['enableSocket'], isDisabled),
    },
  },
  channel: { keys: {}, params: usedKeys('name') },
};

/**
 * Returns a note or an error for each key of a device that is not used. `field` is the path of the device in the
 * request.
 */
export function checkDeviceKeys(field: string, device: HostDevice): KeyFindings {
  if (device.type === 'graphics')
    return { notes: [`${field} is left out: there is no VNC or SPICE server`], errors: [] };
  const rules = Object.hasOwn(RULES_BY_TYPE, device.type) ? RULES_BY_TYPE[device.type] : undefined;
  if (rules === undefined) return NO_FINDINGS;
  return mergeFindings(
    checkKeys(device, { ...READONLY_NOTE, ...BOOT_ORDER_NOTE, ...COMMON, ...rules.keys }, `${field}.`),
    checkKeys(readMapAt(device, 'specParams'), rules.params, `${field}.specParams.`),
    { notes: noteFloppyErrors(field, device), errors: checkInterfaceDevice(field, device) },
  );
}

/**
 * Accepts only bridged interfaces, and models, because `list` reports the model of VMs of launcher pods as `device`.
 */
function checkInterfaceDevice(field: string, { type, device }: HostDevice): string[] {
  if (type !== 'interface' || device === 'bridge' || INTERFACE_MODELS.some((model) => model === device)) return [];
  return [`${field}.device: ${quoteSentValue(device)}; expected bridge: this host does not pass devices through`];
}

function noteFloppyErrors(field: string, { type, device, propagateErrors }: HostDevice): string[] {
  if (type !== 'disk' || device !== 'floppy' || isBlank(propagateErrors)) return [];
  return [`${field}.propagateErrors has no effect: errors of floppy disks are always reported to the guest`];
}
