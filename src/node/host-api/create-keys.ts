/** What `create` does with each key of a VM; its devices are device-keys.ts's. Pure. */
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';
import {
  findKeys,
  isEmpty,
  isOff,
  isOneOf,
  merged,
  noted,
  refusedKeys,
  reported,
  used,
  type KeyFindings,
  type KeyRules,
} from '#node/host-api/key-rules.ts';
import { isOn, textOf, type SentMap } from '#node/host-api/sent-values.ts';

const NO_SERVER = 'there is no VNC or SPICE server';
const HOST_DECIDES = 'this host does not tune single guests';
const NO_STATE = 'this host starts guests from their disks only';

/** Keys of the flat format; a VM with `devices` is not made of them. */
export const FLAT_KEYS: readonly string[] = [
  ...['drives', 'hda', 'hdb', 'hdc', 'hdd', 'cdrom', 'floppy'],
  ...['macAddr', 'nicModel', 'bridge', 'soundDevice', 'spiceMonitors'],
];

/** Of vdsm 3.1 to 4.1 and the engine that called it, and our own. */
export const CREATE_RULES: KeyRules = {
  ...used(
    'vmId',
    'vmName',
    'memSize',
    'display',
    'emulatedMachine',
    'smp',
    'smpCoresPerSocket',
    'smpThreadsPerCore',
    'cpuType',
  ),
  ...used('acpiEnable', 'uuid', 'serial', 'boot', 'kernel', 'initrd', 'kernelArgs', 'devices', 'hash', 'custom'),
  ...used('timeOffset', 'tdf', 'pitReinjection', 'nice', 'vmchannel', 'kvmEnable', ...FLAT_KEYS),
  ...reported('status', 'pid', 'deviceRevision'),
  ...noted(NO_SERVER, ['displayNetwork', 'displayIp', 'spiceSecureChannels', 'spiceSslCipherSuite']),
  ...noted(NO_SERVER, ['keyboardLayout', 'clientIp', 'username', 'displayPort', 'displaySecurePort']),
  ...noted(NO_SERVER, ['copyPasteEnable', 'fileTransferEnable', 'smartcardEnable'], isOff),
  ...noted(HOST_DECIDES, ['transparentHugePages', 'cpuShares', 'cpuPinning', 'numaTune', 'numOfIoThreads']),
  ...noted('the guest has all of its memory from the start', ['memGuaranteedSize', 'maxMemSize', 'maxMemSlots']),
  ...noted('processors are not plugged in later', ['maxVCpus']),
  ...noted('the guest has one NUMA node', ['guestNumaNodes']),
  ...noted('the guest gets no Hyper-V features', ['hypervEnable'], isOff),
  ...noted('the firmware shows no boot menu', ['bootMenuEnable'], isOff),
  ...noted('the guest gets no tablet', ['tabletEnable'], isOff),
  ...noted('what the guest writes to a floppy disk stays there', ['volatileFloppy'], isOff),
  ...noted('events of guests are not passed on', ['enableGuestEvents'], isOff),
  ...noted('disks are never merged', ['liveMerge'], isOff),
  ...noted('it is what a host reports of a guest', [
    ...['exitCode', 'exitMessage', 'exitReason', 'pauseCode', 'guestIPs', 'guestFQDN', 'monitorResponse', 'statusTime'],
    ...['elapsedTime', 'statsAge', 'guestDiskMapping', 'session', 'afterMigrationStatus', 'elapsedTimeOffset'],
  ]),
  ...refusedKeys('expected kvm', ['vmType'], isOneOf('kvm')),
  ...refusedKeys('this host has no verb to continue the guest; leave it out', ['launchPaused'], isOff),
  ...refusedKeys(`${NO_STATE}; leave it out`, ['hiberVolHandle', 'restoreState', 'restoreFromSnapshot', 'recover']),
  ...refusedKeys(`${NO_STATE}; guests are migrated between nodes by VirtualMachineInstanceMigrations`, [
    ...['migrationDest', '_migrationParams', '_srcDomXML'],
  ]),
  ...refusedKeys('this host makes no floppy disk of it; put it on a disk and send that', ['sysprepInf']),
  ...refusedKeys('this host takes devices, not XML; virtctl import libvirt reads it', ['xml']),
};

export function createFindings(sent: SentMap): KeyFindings {
  return merged(findKeys(sent, CREATE_RULES), { notes: unusedTogether(sent), faults: [] });
}

/** Keys that are used, but not in this company. */
function unusedTogether(sent: SentMap): string[] {
  const isUseless = (key: string) => !isEmpty(sent[key]);
  const flat = 'devices' in sent ? FLAT_KEYS.filter(isUseless) : [];
  const kernel = isEmpty(sent['kernel']) ? ['initrd', 'kernelArgs'].filter(isUseless) : [];
  const monitors =
    !('devices' in sent) && textOf(sent['display'])?.startsWith('qxl') !== true && isUseless('spiceMonitors')
      ? ['spiceMonitors has no effect: the display is not qxl']
      : [];
  return [
    ...('devices' in sent && isUseless('display') ? [`display has no effect: ${NO_SERVER}`] : []),
    ...flat.map((key) => `${key} has no effect: the VM is made of devices`),
    ...kernel.map((key) => `${key} has no effect: there is no kernel`),
    ...monitors,
  ];
}

/** Returns a note where guests of this host do not run as `kvmEnable` asks. */
export function kvmNotes({ kvmEnable }: SentMap, { accelerator }: Pick<Capabilities, 'accelerator'>): string[] {
  if (isEmpty(kvmEnable) || isOn(kvmEnable) === (accelerator === 'kvm')) return [];
  return [`kvmEnable has no effect: all guests of this host run with ${accelerator}`];
}
