/**
 * Converts a description to API objects: a halted VM, and claims for the content of its disks. An annotation of the VM
 * contains the rows, from which its record is created before the first start. Pure.
 */
import type { StateModes } from '#api/storage/storage-profile.ts';
import { chipsetOf } from '#api/devices/chipset.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { parseImportedDevices, type ImportedDevices } from '#api/devices/imported-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { placeKey } from '#formats/address-text.ts';
import { Findings } from '#formats/findings.ts';
import { sourceText, type MachineDescription, type DescribedNic } from '#formats/machine.ts';
import { diskManifests, type DiskManifests, type DiskOptions } from '#formats/vm/disk-manifests.ts';
import { type PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS, type Secret } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';
import type { Devices } from '#api/domain/devices.ts';
import { INPUT_BUSES, SOUND_MODELS, WATCHDOG_ACTIONS } from '#api/domain/hardware.ts';
import { VIDEO_TYPES } from '#api/domain/video.ts';
import { SOUND_ID, VIDEO_ID, WATCHDOG_ID } from '#api/devices/fixed-devices.ts';
import type { Interface, Network } from '#api/domain/interface.ts';
import { quoteText } from '#lib/text/quote-text.ts';
import {
  STATE_LABEL,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateSuffixOf,
} from '#api/storage/persistent-state.ts';
import { isDefinitionName } from '#api/network/network-attachment-definition.ts';

export interface ManifestOptions extends DiskOptions {
  /** The storage class of the claim for the persistent state if `storageClass` is absent. */
  readonly stateStorageClass?: string;
  /** The modes of that claim. Default: Filesystem and ReadWriteOnce. */
  readonly stateModes?: StateModes;
  /** True if the caller omits the persistent state of the file, and says so itself. */
  readonly omitsState?: boolean;
  /** The replacement of each network of the description: `pod` or the name of a NetworkAttachmentDefinition. */
  readonly networks?: ReadonlyMap<string, string>;
  /** The machine types that nodes offer, as far as they are known. */
  readonly offeredTypes?: ReadonlySet<string>;
}

interface Manifests {
  readonly vm: VirtualMachine;
  readonly claims: readonly PersistentVolumeClaim[];
  /** Cloud-init data that was in Secrets. */
  readonly secrets: readonly Secret[];
  /** Sentences about changes, in addition to the notes of the description. */
  readonly notes: readonly string[];
}

/** Throws a FileFormatError if a disk has neither a size nor a claim, or if networks are invalid. */
export function toManifests(machine: MachineDescription, options: ManifestOptions): Manifests {
  const findings = new Findings();
  const disks = diskManifests(machine, options, findings);
  const { interfaces, networks } = nicManifests(machine.nics, options.networks ?? new Map<string, string>(), findings);
  const annotation = buildAnnotation(machine, findings);
  const type = chooseMachineType(machine, options, findings);
  findings.throwIfErrors('import machine');
  const vm: VirtualMachine = {
    apiVersion: apiVersionOf(VIRTUAL_MACHINES),
    kind: VIRTUAL_MACHINES.kind,
    metadata: {
      name: options.name,
      namespace: options.namespace,
      ...(machine.labels && { labels: { ...machine.labels } }),
      annotations: { [IMPORTED_DEVICES_ANNOTATION]: annotation },
    },
    spec: {
      runStrategy: 'Halted',
      template: {
        ...(machine.templateLabels && { metadata: { labels: { ...machine.templateLabels } } }),
        spec: {
          ...(machine.hostname !== undefined && { hostname: machine.hostname }),
          domain: buildDomain(machine, type, disks, interfaces),
          ...(disks.volumes.length > 0 && { volumes: [...disks.volumes] }),
          ...(networks.length > 0 && { networks: [...networks] }),
        },
      },
    },
  };
  const claims = [...disks.claims, ...stateManifests(machine, options, findings)];
  return { vm, claims, secrets: disks.secrets, notes: findings.notes };
}

function buildDomain(
  machine: MachineDescription,
  type: string | undefined,
  { disks }: DiskManifests,
  interfaces: NonNullable<NonNullable<DomainSpec['devices']>['interfaces']>,
): DomainSpec {
  const { cpu, memoryMib, uuid, serial, firmware, tpm, state, rows } = machine;
  const has = (kind: string) => rows.some((row) => row.type === kind);
  // A file without any such devices does not mean that the machine has none.
  const knowsDevices = rows.some((row) => !['disk', 'interface', 'video'].includes(row.type));
  const isSecure = firmware === 'efi-secure';
  return {
    cpu: { ...cpu },
    memory: { guest: `${memoryMib}Mi` },
    ...(type !== undefined && { machine: { type } }),
    firmware: {
      ...(uuid !== undefined && { uuid }),
      ...(serial !== undefined && { serial }),
      bootloader:
        firmware === 'bios'
          ? { bios: {} }
          : { efi: { secureBoot: isSecure, ...(state?.efi === true && { persistent: true }) } },
    },
    ...(isSecure && { features: { smm: { enabled: true } } }),
    devices: {
      disks: [...disks],
      interfaces: [...interfaces],
      ...(interfaces.length === 0 && { autoattachPodInterface: false }),
      ...(tpm && { tpm: state?.tpm === true ? { persistent: true } : {} }),
      ...(has('rng') && { rng: {} }),
      ...hardwareManifests(rows),
      ...(knowsDevices && !has('balloon') && { autoattachMemBalloon: false }),
      ...(knowsDevices && !has('console') && { autoattachSerialConsole: false }),
    },
  };
}

const KNOWN_TYPE = /^(?:q35|pc|pc-(?:q35|i440fx)-[0-9]{1,2}(?:\.[0-9]{1,2}){1,2})$/;

/** Replaces machine types of other vendors (pc-q35-rhel8.0.0) with the newest type of the same chipset, unless a node has them. */
function chooseMachineType(
  { machineType, chipset }: MachineDescription,
  { offeredTypes }: ManifestOptions,
  findings: Findings,
): string | undefined {
  if (machineType !== undefined && (KNOWN_TYPE.test(machineType) || offeredTypes?.has(machineType) === true))
    return machineType;
  const alias = chipset === undefined ? undefined : { q35: 'q35', i440fx: 'pc' }[chipset];
  if (machineType !== undefined) {
    findings.addNote(
      `the machine type ${machineType} is not supported; it is replaced with ${alias ?? 'the default of the cluster'}`,
    );
  }
  return alias;
}

function buildAnnotation(machine: MachineDescription, findings: Findings): string {
  const { source, machineType, chipset } = machine;
  const alias = chipset === 'i440fx' ? 'pc' : chipset;
  const originalType = chipsetOf(machineType) === undefined ? alias : machineType;
  const devices = buildRecordRows(machine, findings);
  const imported: ImportedDevices = {
    from: sourceText(source),
    ...(originalType !== undefined && { machine: originalType }),
    devices,
  };
  const text = JSON.stringify(imported);
  const parsed = parseImportedDevices(text);
  if ('fault' in parsed) findings.addError(`the devices cannot be recorded: ${parsed.fault}`);
  return text;
}

/**
 * Returns the rows for the record. The address of a drive does not contain its controller, so the bus is added. An
 * unplugged device loses its address if another device has it.
 */
function buildRecordRows({ rows, disks }: MachineDescription, findings: Findings): LearnedDevice[] {
  const buses = new Map<string, string>(disks.map(({ id, bus }) => [id, bus]));
  const occupied = new Set(
    rows.flatMap(({ plugged, address }) => (plugged === false ? [] : (placeKey(address) ?? []))),
  );
  return rows.map((row) => {
    const bus = buses.get(row.id);
    const specParams = bus === undefined ? row.specParams : { ...row.specParams, bus };
    const place = placeKey(row.address);
    const isLost = row.plugged === false && place !== undefined && occupied.has(place);
    if (isLost) findings.addNote(`${row.id} is not plugged, and another device is at its address; it gets a new one`);
    return { ...row, ...(specParams !== undefined && { specParams }), ...(isLost && { address: undefined }) };
  });
}

type Hardware = Pick<
  Devices,
  'autoattachGraphicsDevice' | 'video' | 'sound' | 'watchdog' | 'inputs' | 'clientPassthrough'
>;

/** Restores the devices of a spec from rows of our own VMs. Other rows stay recorded devices. */
function hardwareManifests(rows: readonly LearnedDevice[]): Hardware {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const [video, sound, watchdog] = [byId.get(VIDEO_ID), byId.get(SOUND_ID), byId.get(WATCHDOG_ID)];
  const inputs = rows.filter(({ id, type }) => type === 'input' && id.startsWith('input-'));
  const type = VIDEO_TYPES.find((known) => known === video?.device);
  const model = SOUND_MODELS.find((known) => known === sound?.device);
  const action = WATCHDOG_ACTIONS.find((known) => known === watchdog?.specParams?.['action']);
  return {
    ...(video !== undefined && { autoattachGraphicsDevice: true, ...(type && type !== 'vga' && { video: { type } }) }),
    ...(sound !== undefined && { sound: { name: nameOf(sound), ...(model && { model }) } }),
    ...(watchdog !== undefined && { watchdog: { name: nameOf(watchdog), i6300esb: { ...(action && { action }) } } }),
    ...(inputs.length > 0 && { inputs: inputs.map(toInput) }),
    ...(rows.some(({ id }) => /^redir-\d+$/.test(id)) && { clientPassthrough: {} }),
  };
}

function toInput(row: LearnedDevice): NonNullable<Devices['inputs']>[number] {
  const bus = INPUT_BUSES.find((known) => known === row.specParams?.['bus']);
  return { name: row.id.slice('input-'.length), type: 'tablet', ...(bus && { bus }) };
}

function nameOf({ id, name }: LearnedDevice): string {
  return name ?? id;
}

const POD = 'pod';

/**
 * Builds the interfaces and networks. `mapped` has `pod` or the name of a NetworkAttachmentDefinition for each network of
 * the description; others have the name of their definition, which is that of the bridge in many files.
 */
function nicManifests(
  nics: readonly DescribedNic[],
  mapped: ReadonlyMap<string, string>,
  findings: Findings,
): { interfaces: Interface[]; networks: Network[] } {
  let pods = 0;
  const networks = nics.map(({ name, network = POD }): Network => {
    const target = mapped.get(network) ?? network;
    if (target === POD) {
      if (++pods === 2)
        findings.addError(
          'only one interface can be on the pod network; name NetworkAttachmentDefinitions for the others',
        );
      return { name, pod: {} };
    }
    if (!isDefinitionName(target)) {
      const text = 'is not a valid name of a NetworkAttachmentDefinition; name one, or pod, for this network';
      findings.addError(`${quoteText(target)} ${text}`);
    }
    findings.addNote(
      `the interface ${name} is on the network ${target}: before the VM starts, a cluster administrator must create the NetworkAttachmentDefinition of this name, which connects it with a bridge or another device of the nodes`,
    );
    return { name, multus: { networkName: target } };
  });
  const interfaces = nics.map(({ name, model, mac, bootOrder, plugged }, i): Interface => ({
    name,
    model,
    ...(mac !== undefined && { macAddress: mac }),
    ...(bootOrder !== undefined && plugged && { bootOrder }),
    ...(!plugged && { state: 'absent' }),
    ...(networks[i]?.pod === undefined ? { bridge: {} } : { masquerade: {} }),
  }));
  return { interfaces, networks };
}

/** The size that the instance controller uses. */
const STATE_SIZE = '10Mi';

/** Returns a name that is the same for the same VM, so that a repeated import reuses the claim. */
export function stateClaimFor(vmName: string): string {
  return stateClaimName(vmName, stateSuffixOf(`import of ${vmName}`));
}

/** Builds the claim for the persistent state of a machine. The VM finds it by its label when it starts. */
function stateManifests(
  { state }: MachineDescription,
  { name, namespace, stateStorageClass, storageClass = stateStorageClass, stateModes, omitsState }: ManifestOptions,
  findings: Findings,
): PersistentVolumeClaim[] {
  if (state === undefined) return [];
  if (state.file === undefined) {
    if (omitsState !== true) {
      findings.addNote('the file does not contain the persistent state of TPM and EFI: both start empty');
    }
    return [];
  }
  return [
    {
      apiVersion: apiVersionOf(PERSISTENT_VOLUME_CLAIMS),
      kind: PERSISTENT_VOLUME_CLAIMS.kind,
      metadata: {
        name: stateClaimFor(name),
        namespace,
        labels: { [STATE_LABEL]: stateKeyOf(name) },
        annotations: { [stateAnnotationOf(name)]: 'true' },
      },
      spec: {
        accessModes: [stateModes?.accessMode ?? 'ReadWriteOnce'],
        ...(stateModes !== undefined && { volumeMode: stateModes.volumeMode }),
        ...(storageClass !== undefined && { storageClassName: storageClass }),
        resources: { requests: { storage: STATE_SIZE } },
      },
    },
  ];
}
