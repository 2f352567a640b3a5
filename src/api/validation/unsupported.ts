/**
 * KubeVirt's fields that we do not have, and what to do instead. Paths are those of an instance; of a VM, those above
 * its template. A field below one of them is refused with it.
 */

const NOT_YET = 'is not supported yet';
const SOURCES = 'persistentVolumeClaim, ephemeral, emptyDisk, hostDisk and cloudInitNoCloud';

const EXPLANATIONS: ReadonlyMap<string, string> = new Map([
  // VirtualMachine
  ['spec.instancetype', `${NOT_YET}; write cpu and memory into spec.template.spec.domain`],
  ['spec.preference', `${NOT_YET}; write what it prefers into spec.template.spec.domain`],
  [
    'spec.dataVolumeTemplates',
    `${NOT_YET}; create a PersistentVolumeClaim and name it in a persistentVolumeClaim volume`,
  ],
  ['spec.updateVolumesStrategy', NOT_YET],

  // VirtualMachineInstance
  ...notYet('spec', ['dnsPolicy', 'dnsConfig', 'topologySpreadConstraints', 'resourceClaims', 'utilityVolumes']),
  ['spec.accessCredentials', `${NOT_YET}; hand keys to the guest by a cloudInitNoCloud volume`],
  ...notYet('spec.domain', ['ioThreads', 'ioThreadsPolicy', 'clock', 'chassis', 'launchSecurity', 'rebootPolicy']),
  ...notYet('spec.domain.cpu', [
    'maxSockets',
    'features',
    'numa',
    'dedicatedCpuPlacement',
    'isolateEmulatorThread',
    'realtime',
  ]),
  ...notYet('spec.domain.memory', ['hugepages', 'maxGuest', 'reservedOverhead']),
  ...notYet('spec.domain.resources', ['overcommitGuestOverhead']),
  ...notYet('spec.domain.firmware', ['acpi']),
  ...notYet('spec.domain.features', ['hyperv', 'hypervPassthrough', 'kvm', 'pvspinlock']),

  // Devices
  ...notYet('spec.domain.devices', [
    'gpus',
    'hostDevices',
    'watchdog',
    'inputs',
    'sound',
    'filesystems',
    'panicDevices',
    'clientPassthrough',
    'downwardMetrics',
    'blockMultiQueue',
    'networkInterfaceMultiqueue',
    'useVirtioTransitional',
    'disableHotplug',
    'autoattachInputDevice',
    'autoattachVSOCK',
  ]),
  [
    'spec.domain.devices.logSerialConsole',
    'may be left out: the serial console is always logged, see the container guest-console-log',
  ],
  ...notYet('spec.domain.devices.disks[]', [
    'io',
    'tag',
    'blockSize',
    'dedicatedIOThread',
    'shareable',
    'errorPolicy',
    'changedBlockTracking',
  ]),
  ...notYet('spec.domain.devices.interfaces[]', ['sriov', 'binding', 'passtBinding', 'tag', 'acpiIndex']),
  ...['slirp', 'passt', 'macvtap'].map((binding): [string, string] => [
    `spec.domain.devices.interfaces[].${binding}`,
    'is not supported; use masquerade, or bridge with a multus network',
  ]),
  [
    'spec.domain.devices.interfaces[].dhcpOptions',
    `${NOT_YET}; hand settings to the guest by networkData of a cloudInitNoCloud volume`,
  ],

  // Volumes and networks
  [
    'spec.volumes[].containerDisk',
    `is not supported: disks do not come from container images here. Use one of ${SOURCES}, or firmware.kernelBoot with the image selfsame/guest for a guest to try things with`,
  ],
  ['spec.volumes[].dataVolume', `${NOT_YET}; name the claim in a persistentVolumeClaim volume`],
  ['spec.volumes[].cloudInitConfigDrive', `${NOT_YET}; use cloudInitNoCloud`],
  ...['configMap', 'secret', 'serviceAccount', 'downwardAPI', 'downwardMetrics', 'sysprep', 'memoryDump'].map(
    (source): [string, string] => [`spec.volumes[].${source}`, `${NOT_YET}; there are ${SOURCES}`],
  ),
  ...notYet('spec.networks[].multus', ['default']),
  ...notYet('spec.networks[]', ['resourceClaim']),

  // VirtualMachineInstanceMigration
  ...['sendTo', 'receive'].map((field): [string, string] => [
    `spec.${field}`,
    'is not supported: an instance goes to another node of its own cluster',
  ]),
  ['spec.priority', NOT_YET],

  // KubeVirt
  ...notYet('spec', [
    'certificateRotateStrategy',
    'customizeComponents',
    'imagePullPolicy',
    'imageRegistry',
    'imageTag',
    'infra',
    'uninstallStrategy',
    'workloadUpdateStrategy',
    'workloads',
  ]),
  ...notYet('spec.configuration', [
    'changedBlockTrackingLabelSelectors',
    'defaultArchitecture',
    'developerConfiguration',
    'network',
    'permittedHostDevices',
    'smbios',
    'vmRolloutStrategy',
  ]),
  ...notYet('spec.configuration.migrations', [
    'allowPostCopy',
    'allowWorkloadDisruption',
    'disableTLS',
    'matchSELinuxLevelOnMigration',
    'network',
    'nodeDrainTaintKey',
    'unsafeMigrationOverride',
    'utilityVolumesTimeout',
  ]),
  ...notYet('spec.configuration.architectureConfiguration', ['arm64', 's390x']),
]);

function notYet(path: string, fields: readonly string[]): [string, string][] {
  return fields.map((field) => [`${path}.${field}`, NOT_YET]);
}

/** What to say of a field, with `[]` for any index; undefined for one that nobody knows. */
export function explainUnsupported(path: string): string | undefined {
  return EXPLANATIONS.get(path);
}
