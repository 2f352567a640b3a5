/** Builds the volumes of a new VM from the flags --volume-*, with the claims that they need. Pure. */
import { flagError, parseParameters } from '#cli/commands/create/parameters.ts';
import { findQuantityError } from '#kube/quantity.ts';

interface NewVolume {
  readonly volume: { readonly name: string } & Record<string, unknown>;
  readonly disk: Record<string, unknown>;
  readonly bootOrder?: number;
  /** A PersistentVolumeClaim to create with the VM. */
  readonly claim?: Record<string, unknown>;
  /** A note to the user about this volume. */
  readonly note?: string;
}

export interface VolumeOptions {
  readonly containerDisks: readonly string[];
  readonly claims: readonly string[];
  readonly imports: readonly string[];
  readonly sysprep: string | undefined;
}

const CDI_TYPES: ReadonlySet<string> = new Set(['gcs', 'http', 'imageio', 'registry', 's3', 'vddk', 'ds', 'pvc']);
const VIRTIO = { disk: { bus: 'virtio' } };

/** Returns the volumes in boot order, unless they have a bootorder. Throws CommandError. */
export function buildNewVolumes(vm: string, options: VolumeOptions): NewVolume[] {
  const volumes = [
    ...options.containerDisks.map((text, i) => buildContainerDisk(vm, text, i)),
    ...options.claims.map(buildClaimVolume),
    ...options.imports.map((text, i) => buildImport(vm, text, i)),
    ...(options.sysprep === undefined ? [] : [buildSysprep(options.sysprep)]),
  ];
  checkUnique(volumes);
  return volumes;
}

function buildContainerDisk(vm: string, text: string, i: number): NewVolume {
  const flag = 'volume-containerdisk';
  const {
    src,
    name = `${vm}-containerdisk-${i}`,
    bootorder,
  } = parseParameters(flag, text, ['src', 'name', 'bootorder']);
  if (src === undefined) throw flagError(flag, 'src must be specified');
  return {
    volume: { name, containerDisk: { image: src } },
    disk: VIRTIO,
    ...parseBootOrder(flag, bootorder),
    note: 'Selfsame does not support container disks: upload the image with virtctl image-upload and use --volume-pvc',
  };
}

function buildClaimVolume(text: string): NewVolume {
  const flag = 'volume-pvc';
  const { src, name = src, bootorder } = parseParameters(flag, text, ['src', 'name', 'bootorder']);
  if (src === undefined || name === undefined) throw flagError(flag, 'src must be specified');
  if (src.includes('/')) throw flagError(flag, `not allowed to specify namespace of PVC '${src}'`);
  return {
    volume: { name, persistentVolumeClaim: { claimName: src } },
    disk: VIRTIO,
    ...parseBootOrder(flag, bootorder),
  };
}

/** Builds a claim. KubeVirt creates a DataVolume instead, which is not needed if nothing has to be downloaded. */
function buildImport(vm: string, text: string, i: number): NewVolume {
  const flag = 'volume-import';
  const given = parseParameters(flag, text, [
    'type',
    'src',
    'size',
    'name',
    'bootorder',
    'namespace',
    'url',
    'storageclass',
  ]);
  const { type, src, size, name = `imported-volume-${i}`, bootorder, storageclass } = given;
  if (type === undefined) throw flagError(flag, 'type must be specified');
  if (CDI_TYPES.has(type)) {
    throw flagError(flag, `type ${type} is not supported without CDI; use virtctl image-upload and --volume-pvc`);
  }
  if (type !== 'blank' && type !== 'snapshot')
    throw flagError(flag, `unknown type ${type}; supported are blank, snapshot`);
  if (size === undefined || findQuantityError(size) !== undefined)
    throw flagError(flag, 'size must be specified, like 10Gi');
  if (type === 'snapshot' && src === undefined) throw flagError(flag, 'src must be specified');
  if (src?.includes('/') === true)
    throw flagError(flag, `the snapshot must be in the namespace of the VM, not '${src}'`);
  const claimName = `${vm}-${name}`;
  const from = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: src };
  return {
    volume: { name, persistentVolumeClaim: { claimName } },
    disk: VIRTIO,
    ...parseBootOrder(flag, bootorder),
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: claimName },
      spec: {
        accessModes: ['ReadWriteOnce'],
        ...(storageclass !== undefined && { storageClassName: storageclass }),
        ...(type === 'snapshot' && { dataSource: from }),
        resources: { requests: { storage: size } },
      },
    },
  };
}

function buildSysprep(text: string): NewVolume {
  const flag = 'volume-sysprep';
  const { src, type = 'configmap', name = 'sysprepdisk' } = parseParameters(flag, text, ['src', 'type', 'name']);
  if (src === undefined) throw flagError(flag, 'src must be specified');
  if (src.includes('/')) throw flagError(flag, `not allowed to specify namespace of ConfigMap or Secret '${src}'`);
  const sources = { configmap: { configMap: { name: src } }, secret: { secret: { name: src } } };
  const source = Object.entries(sources).find(([kind]) => kind === type.toLowerCase())?.[1];
  if (source === undefined)
    throw flagError(flag, `invalid source type "${type}", supported values are: configMap, secret`);
  return { volume: { name, sysprep: source }, disk: { cdrom: { bus: 'sata' } } };
}

function parseBootOrder(flag: string, text: string | undefined): { bootOrder?: number } {
  if (text === undefined) return {};
  const bootOrder = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (bootOrder === 0) throw flagError(flag, 'bootorder must be greater than 0');
  return { bootOrder };
}

function checkUnique(volumes: readonly NewVolume[]): void {
  const [names, orders] = [new Set<string>(), new Set<number>()];
  for (const { volume, bootOrder } of volumes) {
    if (names.has(volume.name)) throw flagError('volume-…', `there is already a Volume with name '${volume.name}'`);
    names.add(volume.name);
    if (bootOrder === undefined) continue;
    if (orders.has(bootOrder)) throw flagError('volume-…', `bootorder ${bootOrder} was specified multiple times`);
    orders.add(bootOrder);
  }
}
