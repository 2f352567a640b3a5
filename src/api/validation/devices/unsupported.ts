/**
 * Explains KubeVirt's fields that are not supported, with alternatives. Paths are those of an instance; fields of a VM
 * outside its template have their own paths. A field below one of these is refused with it.
 */

const NOT_YET = 'is not supported yet';
const SOURCES =
  'persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, configMap, secret, serviceAccount and downwardAPI';

const EXPLANATIONS: ReadonlyMap<string, string> = new Map([
  // VirtualMachine
  ['spec.instancetype', `${NOT_YET}; set cpu and memory in spec.template.spec.domain`],
  ['spec.preference', `${NOT_YET}; set the preferred values in spec.template.spec.domain`],
  [
    'spec.dataVolumeTemplates',
    `${NOT_YET}; create a PersistentVolumeClaim and name it in a persistentVolumeClaim volume`,
  ],
  ['spec.updateVolumesStrategy', NOT_YET],

  // VirtualMachineInstance
  ...notYet('spec', ['dnsPolicy', 'dnsConfig', 'topologySpreadConstraints', 'resourceClaims', 'utilityVolumes']),
  ['spec.accessCredentials', `${NOT_YET}; pass keys to the guest in a cloudInitNoCloud volume`],
  ...notYet('spec.domain', ['launchSecurity', 'rebootPolicy']),
  [
    'spec.domain.ioThreads',
    'is not supported: it is for the policy supplementalPool; use ioThreadsPolicy shared or auto',
  ],
  ['spec.domain.cpu.maxSockets', 'is not supported: vCPUs cannot be hotplugged; change cpu.sockets and restart'],
  ...['dedicatedCpuPlacement', 'isolateEmulatorThread', 'realtime', 'numa'].map((field): [string, string] => [
    `spec.domain.cpu.${field}`,
    'is not supported: physical CPUs are not dedicated to guests; request more CPUs with resources.requests.cpu',
  ]),
  ['spec.domain.memory.hugepages', 'is not supported: nodes do not provide huge pages; remove the field'],
  ['spec.domain.memory.maxGuest', 'is not supported: memory cannot be hotplugged; change memory.guest and restart'],
  ...notYet('spec.domain.memory', ['reservedOverhead']),
  ...notYet('spec.domain.firmware', ['acpi']),
  ...notYet('spec.domain.features.apic', ['endOfInterrupt']),

  // Devices
  ...['gpus', 'hostDevices'].map((field): [string, string] => [
    `spec.domain.devices.${field}`,
    'is not supported: a device of one node does not exist on another, so the VM would not stay the same; use an emulated device, or a directLun volume for a disk',
  ]),
  ['spec.domain.devices.filesystems', 'is not supported: virtiofsd is not available; use a disk'],
  ['spec.domain.devices.panicDevices', 'is not supported: panics are not monitored; use watchdog'],
  ['spec.domain.devices.downwardMetrics', 'is not supported: nodes do not provide metrics to guests'],
  [
    'spec.domain.devices.useVirtioTransitional',
    'is not supported: virtio devices are modern on q35 and transitional on i440fx',
  ],
  ['spec.domain.devices.disableHotplug', 'is not supported: root ports for hotplug are part of every machine'],
  ['spec.domain.devices.autoattachVSOCK', 'is not supported: vsock is not available; use a network'],
  ...['watchdog.diag288'].map((field): [string, string] => [
    `spec.domain.devices.${field}`,
    'is not supported: it is for s390x; use i6300esb',
  ]),
  [
    'spec.domain.devices.logSerialConsole',
    'is not needed: the serial console is always logged, see the container guest-console-log; remove the field',
  ],
  ...notYet('spec.domain.devices.disks[]', [
    'io',
    'tag',
    'blockSize',
    'shareable',
    'errorPolicy',
    'changedBlockTracking',
  ]),
  ...notYet('spec.domain.devices.interfaces[]', ['sriov', 'binding', 'passtBinding', 'tag']),
  ...['slirp', 'passt', 'macvtap'].map((binding): [string, string] => [
    `spec.domain.devices.interfaces[].${binding}`,
    'is not supported; use masquerade or bridge',
  ]),
  [
    'spec.domain.devices.interfaces[].dhcpOptions',
    `${NOT_YET}; pass settings to the guest in networkData of a cloudInitNoCloud volume`,
  ],

  // Volumes and networks
  [
    'spec.volumes[].containerDisk',
    `is not supported: disks cannot be container images. Use one of ${SOURCES}, or firmware.kernelBoot with the image selfsame/guest for a test guest`,
  ],
  ['spec.volumes[].dataVolume', `${NOT_YET}; name the claim in a persistentVolumeClaim volume`],
  ['spec.volumes[].cloudInitConfigDrive', `${NOT_YET}; use cloudInitNoCloud`],
  ...['downwardMetrics', 'sysprep', 'memoryDump'].map((source): [string, string] => [
    `spec.volumes[].${source}`,
    `${NOT_YET}; use one of ${SOURCES}`,
  ]),
  ...[
    ['configMap.items', 'key of the ConfigMap'],
    ['secret.items', 'key of the Secret'],
  ].map(([field, what]): [string, string] => [
    `spec.volumes[].${field}`,
    `is not supported: there is one file for each ${what}; create an object with only the keys that the guest needs`,
  ]),
  ['spec.volumes[].downwardAPI.items', 'is not supported: use fields'],
  [
    'spec.volumes[].downwardAPI.fields[].resourceFieldRef',
    'is not supported: guests see their own CPUs and memory; use fieldRef for metadata',
  ],
  ...['configMap.defaultMode', 'secret.defaultMode', 'downwardAPI.defaultMode', 'downwardAPI.fields[].mode'].map(
    (field): [string, string] => [
      `spec.volumes[].${field}`,
      'is not supported: the files are on a read-only disk, and the guest chooses the mode when it mounts the disk',
    ],
  ),
  ...notYet('spec.networks[].multus', ['default']),
  ...notYet('spec.networks[]', ['resourceClaim']),

  // VirtualMachineInstanceMigration
  ...['sendTo', 'receive'].map((field): [string, string] => [
    `spec.${field}`,
    'is not supported: an instance can only be migrated within its cluster',
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
    'network',
    'permittedHostDevices',
    'vmRolloutStrategy',
  ]),
  ...notYet('spec.configuration.developerConfiguration', [
    'clusterProfiler',
    'cpuAllocationRatio',
    'diskVerification',
    'featureGates',
    'logVerbosity',
    'minimumClusterTSCFrequency',
    'minimumReservePVCBytes',
    'nodeSelectors',
    'pvcTolerateLessSpaceUpToPercent',
    'useEmulation',
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

/**
 * Returns the explanation for a field, with `[]` for any index; undefined for fields that KubeVirt does not have
 * either.
 */
export function explainUnsupported(path: string): string | undefined {
  return EXPLANATIONS.get(path);
}

/** Returns the fields of the object at `path` that KubeVirt has and we do not support yet. */
export function fieldsNotYetSupported(path: string): string[] {
  return [...EXPLANATIONS].flatMap(([field, why]) =>
    why === NOT_YET && field.slice(0, field.lastIndexOf('.')) === path ? [field.slice(path.length + 1)] : [],
  );
}
