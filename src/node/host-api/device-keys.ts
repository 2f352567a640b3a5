/** What this host does with each key of a device, by its type. Pure. */
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import {
  findKeys,
  isEmpty,
  isOff,
  isOneOf,
  mapAt,
  merged,
  NO_FINDINGS,
  noted,
  refusedKeys,
  reported,
  used,
  type KeyFindings,
  type KeyRules,
} from '#node/host-api/key-rules.ts';
import { shown, wholeOf } from '#node/host-api/sent-values.ts';

interface DeviceRules {
  readonly keys: KeyRules;
  readonly params: KeyRules;
}

const COMMON: KeyRules = {
  ...used('type', 'deviceType', 'device', 'deviceId', 'address', 'specParams', 'managed', 'name'),
  ...reported('alias'),
};
const READ_ONLY = noted('it can always be written', ['readonly'], isOff);
const NO_BOOT = noted('nothing is booted from it', ['bootOrder'], (value) => !wholeOf(value));
const NO_LIMITS = 'this host limits no single device';
const REPORTED_DISK = ['apparentsize', 'truesize', 'reqsize', 'volumeChain', 'volumeInfo', 'baseVolumeID', 'blockDev'];
const NO_MIRRORING = 'this host mirrors no ports; leave it out';
const FILE_OR_LUN = 'expected a disk in a file or a LUN of this host';

const is = (word: string) => isOneOf(word);

/** By type. Devices of other types are left out whole, and a note says so. */
export const DEVICE_RULES: Readonly<Record<string, DeviceRules>> = {
  disk: {
    keys: {
      ...used('iface', 'index', 'path', 'format', 'readonly', 'optional', 'shared', 'serial', 'bootOrder'),
      ...used('poolID', 'domainID', 'imageID', 'volumeID', 'GUID', 'UUID', 'propagateErrors'),
      ...noted('it is what a host reports of a disk', REPORTED_DISK),
      ...noted('a disk is found by its index', ['bus']),
      ...noted('commands of a LUN are passed on as they are', ['sgio']),
      ...noted('what the guest discards is always discarded', ['discard']),
      ...refusedKeys(FILE_OR_LUN, ['diskType'], isOneOf('file', 'block')),
      ...refusedKeys(FILE_OR_LUN, ['hosts', 'protocol', 'auth']),
    },
    params: {
      ...used('bus'),
      ...noted(NO_LIMITS, ['ioTune']),
      ...noted('threads are not pinned', ['pinToIoThread']),
      ...refusedKeys('this host makes no disc of it; put it on a disk and send that', ['vmPayload']),
      ...refusedKeys('expected it beside specParams', ['path']),
    },
  },
  interface: {
    keys: {
      ...used('nicModel', 'macAddr', 'network', 'linkActive', 'bootOrder'),
      ...noted('traffic is not filtered', ['filter', 'filterParameters']),
      ...noted('it is for hooks, and this host runs none', ['custom']),
      ...refusedKeys(NO_MIRRORING, ['portMirroring']),
      ...READ_ONLY,
    },
    params: {
      ...noted(NO_LIMITS, ['inbound', 'outbound']),
      ...refusedKeys(NO_MIRRORING, ['promisc'], isOneOf('none', 'false')),
    },
  },
  controller: {
    keys: {
      ...used('model'),
      ...noted('controllers are found by their addresses', ['index'], is('0')),
      ...noted('each function is a controller of its own', ['master']),
    },
    params: {
      ...used('model', 'index'),
      ...noted('threads are not pinned', ['ioThreadId']),
      ...noted('it has as many ports as QEMU gives it', ['ports', 'vectors']),
    },
  },
  video: {
    keys: {},
    params: {
      ...noted('the card has the video memory that QEMU gives it', ['vram', 'ram', 'vgamem']),
      ...noted('a card has one monitor', ['heads'], is('1')),
    },
  },
  sound: { keys: {}, params: {} },
  balloon: { keys: {}, params: used('model') },
  watchdog: {
    keys: used('model'),
    params: { ...used('model'), ...noted('the guest is reset', ['action'], is('reset')) },
  },
  rng: {
    keys: noted('it is a virtio device', ['model'], is('virtio')),
    params: {
      ...noted("it takes numbers from the host's urandom", ['source'], is('urandom')),
      ...noted(NO_LIMITS, ['bytes', 'period']),
    },
  },
  tpm: {
    keys: {},
    params: {
      ...noted('it is an emulated TPM with a CRB interface', ['model'], isOneOf('tpm-crb', 'crb')),
      ...refusedKeys('expected an emulated TPM', ['mode'], is('emulator')),
      ...refusedKeys('expected an emulated TPM', ['path']),
    },
  },
  console: {
    keys: {},
    params: {
      ...noted('it is a serial console', ['consoleType'], is('serial')),
      ...noted('it is reached by virtctl only', ['enableSocket'], isOff),
    },
  },
  channel: { keys: {}, params: used('name') },
};

/** Returns what was sent of a device and is not used; `field` is where it was sent. */
export function deviceFindings(field: string, device: HostDevice): KeyFindings {
  if (device.type === 'graphics')
    return { notes: [`${field} is left out: there is no VNC or SPICE server`], faults: [] };
  const rules = Object.hasOwn(DEVICE_RULES, device.type) ? DEVICE_RULES[device.type] : undefined;
  if (rules === undefined) return NO_FINDINGS;
  return merged(
    findKeys(device, { ...READ_ONLY, ...NO_BOOT, ...COMMON, ...rules.keys }, `${field}.`),
    findKeys(mapAt(device, 'specParams'), rules.params, `${field}.specParams.`),
    { notes: noteErrors(field, device), faults: sortFaults(field, device) },
  );
}

/** Only a network card of a bridge can be made here. VMs of launcher pods are listed with the model as the device. */
function sortFaults(field: string, { type, device }: HostDevice): string[] {
  if (type !== 'interface' || device === 'bridge' || INTERFACE_MODELS.some((model) => model === device)) return [];
  return [`${field}.device: ${shown(device)}; expected bridge: this host passes none of its own devices through`];
}

function noteErrors(field: string, { type, device, propagateErrors }: HostDevice): string[] {
  if (type !== 'disk' || device !== 'floppy' || isEmpty(propagateErrors)) return [];
  return [`${field}.propagateErrors has no effect: errors of floppy disks always reach the guest`];
}
