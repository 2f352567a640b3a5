/** The volumes of a new VM, from the flags --volume-*. Claims that they need are made beside it. Pure. */
import { flagFault, parseParameters } from '#cli/create/parameters.ts';
import { quantityFault } from '#kube/quantity.ts';

export interface NewVolume {
  readonly volume: { readonly name: string } & Record<string, unknown>;
  readonly disk: Record<string, unknown>;
  readonly bootOrder?: number;
  /** A PersistentVolumeClaim that is made with the VM. */
  readonly claim?: Record<string, unknown>;
  /** What this cluster has to say about it. */
  readonly note?: string;
}

export interface VolumeWishes {
  readonly containerDisks: readonly string[];
  readonly claims: readonly string[];
  readonly imports: readonly string[];
  readonly sysprep: string | undefined;
}

const ELSEWHERE: ReadonlySet<string> = new Set(['gcs', 'http', 'imageio', 'registry', 's3', 'vddk', 'ds', 'pvc']);
const VIRTIO = { disk: { bus: 'virtio' } };

/** In the order in which they boot, unless they say otherwise. Throws CommandError. */
export function newVolumes(vm: string, wishes: VolumeWishes): NewVolume[] {
  const volumes = [
    ...wishes.containerDisks.map((text, i) => containerDisk(vm, text, i)),
    ...wishes.claims.map(claimVolume),
    ...wishes.imports.map((text, i) => imported(vm, text, i)),
    ...(wishes.sysprep === undefined ? [] : [sysprep(wishes.sysprep)]),
  ];
  checkOrders(volumes);
  return volumes;
}

function containerDisk(vm: string, text: string, i: number): NewVolume {
  const flag = 'volume-containerdisk';
  const {
    src,
    name = `${vm}-containerdisk-${i}`,
    bootorder,
  } = parseParameters(flag, text, ['src', 'name', 'bootorder']);
  if (src === undefined) throw flagFault(flag, 'src must be specified');
  return {
    volume: { name, containerDisk: { image: src } },
    disk: VIRTIO,
    ...orderOf(flag, bootorder),
    note: 'Selfsame does not support container disks: upload the image with virtctl image-upload and use --volume-pvc',
  };
}

function claimVolume(text: string): NewVolume {
  const flag = 'volume-pvc';
  const { src, name = src, bootorder } = parseParameters(flag, text, ['src', 'name', 'bootorder']);
  if (src === undefined || name === undefined) throw flagFault(flag, 'src must be specified');
  if (src.includes('/')) throw flagFault(flag, `not allowed to specify namespace of PVC '${src}'`);
  return {
    volume: { name, persistentVolumeClaim: { claimName: src } },
    disk: VIRTIO,
    ...orderOf(flag, bootorder),
  };
}

/** Upstream makes DataVolumes of them; a claim is as good where nothing has to be fetched. */
function imported(vm: string, text: string, i: number): NewVolume {
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
  if (type === undefined) throw flagFault(flag, 'type must be specified');
  if (ELSEWHERE.has(type)) {
    throw flagFault(flag, `type ${type} is not supported without CDI; use virtctl image-upload and --volume-pvc`);
  }
  if (type !== 'blank' && type !== 'snapshot')
    throw flagFault(flag, `unknown type ${type}; supported are blank, snapshot`);
  if (size === undefined || quantityFault(size) !== undefined)
    throw flagFault(flag, 'size must be specified, like 10Gi');
  if (type === 'snapshot' && src === undefined) throw flagFault(flag, 'src must be specified');
  if (src?.includes('/') === true)
    throw flagFault(flag, `the snapshot must be in the namespace of the VM, not '${src}'`);
  const claimName = `${vm}-${name}`;
  const from = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: src };
  return {
    volume: { name, persistentVolumeClaim: { claimName } },
    disk: VIRTIO,
    ...orderOf(flag, bootorder),
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

function sysprep(text: string): NewVolume {
  const flag = 'volume-sysprep';
  const { src, type = 'configmap', name = 'sysprepdisk' } = parseParameters(flag, text, ['src', 'type', 'name']);
  if (src === undefined) throw flagFault(flag, 'src must be specified');
  if (src.includes('/')) throw flagFault(flag, `not allowed to specify namespace of ConfigMap or Secret '${src}'`);
  const sources = { configmap: { configMap: { name: src } }, secret: { secret: { name: src } } };
  const source = Object.entries(sources).find(([kind]) => kind === type.toLowerCase())?.[1];
  if (source === undefined)
    throw flagFault(flag, `invalid source type "${type}", supported values are: configMap, secret`);
  return { volume: { name, sysprep: source }, disk: { cdrom: { bus: 'sata' } } };
}

function orderOf(flag: string, text: string | undefined): { bootOrder?: number } {
  if (text === undefined) return {};
  const bootOrder = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (bootOrder === 0) throw flagFault(flag, 'bootorder must be greater than 0');
  return { bootOrder };
}

function checkOrders(volumes: readonly NewVolume[]): void {
  const [names, orders] = [new Set<string>(), new Set<number>()];
  for (const { volume, bootOrder } of volumes) {
    if (names.has(volume.name)) throw flagFault('volume-…', `there is already a Volume with name '${volume.name}'`);
    names.add(volume.name);
    if (bootOrder === undefined) continue;
    if (orders.has(bootOrder)) throw flagFault('volume-…', `bootorder ${bootOrder} was specified multiple times`);
    orders.add(bootOrder);
  }
}
