/** The rules for the keys of a VM in `create`; device-keys.ts has those for its devices. Pure. */
import type { Capabilities } from '#node/hardware/capabilities.ts';
import {
  checkKeys,
  isBlank,
  isDisabled,
  isBlankOrOneOf,
  mergeFindings,
  notedKeys,
  refusedKeys,
  reportedKeys,
  usedKeys,
  type KeyFindings,
  type KeyRules,
} from '#node/host-api/sent/key-rules.ts';
import { isEnabled, readText, type SentMap } from '#node/host-api/sent/sent-values.ts';

const NO_SERVER = 'there is no VNC or SPICE server';
const NO_TUNING = 'this host does not tune single guests';
const NO_SAVED_STATE = 'this host only starts guests from their disks';

/** Keys of the old format. They have no effect for a VM that has `devices`. */
const OLD_FORMAT_KEYS: readonly string[] = [
  ...['drives', 'hda', 'hdb', 'hdc', 'hdd', 'cdrom', 'floppy'],
  ...['macAddr', 'nicModel', 'bridge', 'soundDevice', 'spiceMonitors'],
];

/** The keys of vdsm 3.1 to 4.1 and of oVirt's engine of that time, and our own. */
const CREATE_RULES: KeyRules = {
  ...usedKeys(
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
  ...usedKeys('acpiEnable', 'uuid', 'serial', 'boot', 'kernel', 'initrd', 'kernelArgs', 'devices', 'hash', 'custom'),
  ...usedKeys('timeOffset', 'tdf', 'pitReinjection', 'nice', 'vmchannel', 'kvmEnable', ...OLD_FORMAT_KEYS),
  ...reportedKeys('status', 'pid', 'deviceRevision'),
  ...notedKeys(NO_SERVER, ['displayNetwork', 'displayIp', 'spiceSecureChannels', 'spiceSslCipherSuite']),
  ...notedKeys(NO_SERVER, ['keyboardLayout', 'clientIp', 'username', 'displayPort', 'displaySecurePort']),
  ...notedKeys(NO_SERVER, ['copyPasteEnable', 'fileTransferEnable', 'smartcardEnable'], isDisabled),
  ...notedKeys(NO_TUNING, ['transparentHugePages', 'cpuShares', 'cpuPinning', 'numaTune', 'numOfIoThreads']),
  ...notedKeys('the guest has all of its memory from the start', ['memGuaranteedSize', 'maxMemSize', 'maxMemSlots']),
  ...notedKeys('this host does not hotplug processors', ['maxVCpus']),
  ...notedKeys('the guest has one NUMA node', ['guestNumaNodes']),
  ...notedKeys('the guest gets no Hyper-V features', ['hypervEnable'], isDisabled),
  ...notedKeys('the firmware shows no boot menu', ['bootMenuEnable'], isDisabled),
  ...notedKeys('the guest gets no tablet', ['tabletEnable'], isDisabled),
  ...notedKeys('writes of the guest to a floppy disk are permanent', ['volatileFloppy'], isDisabled),
  ...notedKeys('events of guests are not passed on', ['enableGuestEvents'], isDisabled),
  ...notedKeys('disks are never merged', ['liveMerge'], isDisabled),
  ...notedKeys('hosts report it; it cannot be set', [
    ...['exitCode', 'exitMessage', 'exitReason', 'pauseCode', 'guestIPs', 'guestFQDN', 'monitorResponse', 'statusTime'],
    ...['elapsedTime', 'statsAge', 'guestDiskMapping', 'session', 'afterMigrationStatus', 'elapsedTimeOffset'],
  ]),
  ...refusedKeys('expected kvm', ['vmType'], isBlankOrOneOf('kvm')),
  ...refusedKeys('this host has no verb to continue the guest; leave it out', ['launchPaused'], isDisabled),
  ...refusedKeys(`${NO_SAVED_STATE}; leave it out`, [
    'hiberVolHandle',
    'restoreState',
    'restoreFromSnapshot',
    'recover',
  ]),
  ...refusedKeys(`${NO_SAVED_STATE}; guests are migrated between nodes by VirtualMachineInstanceMigrations`, [
    ...['migrationDest', '_migrationParams', '_srcDomXML'],
  ]),
  ...refusedKeys('this host does not create floppy disks; send a disk with this content', ['sysprepInf']),
  ...refusedKeys('this host does not accept XML; send devices, or use virtctl import libvirt', ['xml']),
};

export function checkCreateKeys(sent: SentMap): KeyFindings {
  return mergeFindings(checkKeys(sent, CREATE_RULES), { notes: noteUnusedCombinations(sent), errors: [] });
}

/** Returns a note for each key that other keys of the same request make ineffective. */
function noteUnusedCombinations(sent: SentMap): string[] {
  const isSent = (key: string) => !isBlank(sent[key]);
  const flat = 'devices' in sent ? OLD_FORMAT_KEYS.filter(isSent) : [];
  const kernel = isBlank(sent['kernel']) ? ['initrd', 'kernelArgs'].filter(isSent) : [];
  const monitors =
    !('devices' in sent) && readText(sent['display'])?.startsWith('qxl') !== true && isSent('spiceMonitors')
      ? ['spiceMonitors has no effect: the display is not qxl']
      : [];
  return [
    ...('devices' in sent && isSent('display') ? [`display has no effect: ${NO_SERVER}`] : []),
    ...flat.map((key) => `${key} has no effect: the request has devices`),
    ...kernel.map((key) => `${key} has no effect: there is no kernel`),
    ...monitors,
  ];
}

/** Returns a note if the host's accelerator is not the one that `kvmEnable` asks for. */
export function noteAccelerator({ kvmEnable }: SentMap, { accelerator }: Pick<Capabilities, 'accelerator'>): string[] {
  if (isBlank(kvmEnable) || isEnabled(kvmEnable) === (accelerator === 'kvm')) return [];
  return [`kvmEnable has no effect: all guests of this host run with ${accelerator}`];
}
