/**
 * KubeVirt's fields that we do not have, and what to do instead. Paths are those of an instance; of a VM, those above
 * its template. A field below one of them is refused with it.
 */

const NOT_YET = 'is not supported yet';
const SOURCES =
  'persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, configMap, secret, serviceAccount and downwardAPI';

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
  ...notYet('spec.domain', ['launchSecurity', 'rebootPolicy']),
  ['spec.domain.ioThreads', 'is not supported: it is for the policy supplementalPool; there are shared and auto'],
  [
    'spec.domain.cpu.maxSockets',
    'is not supported: processors do not come while the guest runs; write cpu.sockets and restart',
  ],
  ...['dedicatedCpuPlacement', 'isolateEmulatorThread', 'realtime', 'numa'].map((field): [string, string] => [
    `spec.domain.cpu.${field}`,
    'is not supported: no processor of a node is kept for one guest; ask for more of them by resources.requests.cpu',
  ]),
  ['spec.domain.memory.hugepages', 'is not supported: nodes hand out no huge pages; leave it out'],
  [
    'spec.domain.memory.maxGuest',
    'is not supported: memory does not come while the guest runs; write memory.guest and restart',
  ],
  ...notYet('spec.domain.memory', ['reservedOverhead']),
  ...notYet('spec.domain.firmware', ['acpi']),
  ...notYet('spec.domain.features.apic', ['endOfInterrupt']),

  // Devices
  ...['gpus', 'hostDevices'].map((field): [string, string] => [
    `spec.domain.devices.${field}`,
    'is not supported: a device of a node would not be there on another one, and the VM would not be the same; use an emulated device, or a directLun volume for a disk',
  ]),
  ['spec.domain.devices.filesystems', 'is not supported: there is no virtiofsd; use a disk'],
  ['spec.domain.devices.panicDevices', 'is not supported: nobody would hear the panic; use watchdog'],
  ['spec.domain.devices.downwardMetrics', 'is not supported: nodes tell guests no metrics'],
  [
    'spec.domain.devices.useVirtioTransitional',
    'is not supported: virtio devices are modern ones on q35, both on i440fx',
  ],
  ['spec.domain.devices.disableHotplug', 'is not supported: the places for what comes later are part of the machine'],
  ['spec.domain.devices.autoattachVSOCK', 'is not supported: there is no vsock; use a network'],
  ...['watchdog.diag288'].map((field): [string, string] => [
    `spec.domain.devices.${field}`,
    'is not supported: it is for s390x; use i6300esb',
  ]),
  [
    'spec.domain.devices.logSerialConsole',
    'may be left out: the serial console is always logged, see the container guest-console-log',
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
  ...['downwardMetrics', 'sysprep', 'memoryDump'].map((source): [string, string] => [
    `spec.volumes[].${source}`,
    `${NOT_YET}; there are ${SOURCES}`,
  ]),
  ...[
    ['configMap.items', 'a key of the ConfigMap'],
    ['secret.items', 'a key of the Secret'],
  ].map(([field, what]): [string, string] => [
    `spec.volumes[].${field}`,
    `is not supported: each file is ${what}, under its name; make an object with the keys that the guest is to see`,
  ]),
  ['spec.volumes[].downwardAPI.items', 'is not supported: the files are named in fields'],
  [
    'spec.volumes[].downwardAPI.fields[].resourceFieldRef',
    'is not supported: guests see their own processors and memory; use fieldRef for what is in the metadata',
  ],
  ...['configMap.defaultMode', 'secret.defaultMode', 'downwardAPI.defaultMode', 'downwardAPI.fields[].mode'].map(
    (field): [string, string] => [
      `spec.volumes[].${field}`,
      'is not supported: the files are on a disk that can only be read; the guest mounts it with the mode that it likes',
    ],
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

/** Returns the fields below an object that KubeVirt has and we do not have yet; `path` is that of the object. */
export function fieldsNotYetSupported(path: string): string[] {
  return [...EXPLANATIONS].flatMap(([field, why]) =>
    why === NOT_YET && field.slice(0, field.lastIndexOf('.')) === path ? [field.slice(path.length + 1)] : [],
  );
}
