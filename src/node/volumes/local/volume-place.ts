/** Finds the location of the data of a PersistentVolume on this node. Pure. */
import { posix } from 'node:path';
import { LOCAL_DRIVER, LOCAL_PROVISIONER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { isFileName } from '#node/volumes/local/mounts/directory.ts';
import { parseBytes, failedRefusal, type VolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

export const VOLUMES_DIR = 'volumes';
/** The directory of NFS mounts. */
const NFS_DIR = 'nfs';
export const DISK_IMAGE = 'disk.img';
/** The directory of the persistent state of a VM, beside the image or instead of it (state-volume.ts). */
export const STATE_DIR = 'state';

export type VolumePlace =
  /** A volume of LOCAL_PROVISIONER: the directory `name` in `<root>/volumes`. */
  | {
      readonly is: 'own';
      readonly root: string;
      readonly name: string;
      readonly block: boolean;
      readonly bytes: number;
    }
  /** A directory of an administrator with an image in it; with `mount`, an NFS volume that is mounted there first. */
  | {
      readonly is: 'directory';
      readonly path: string;
      readonly bytes: number;
      readonly create: boolean;
      readonly mount?: { readonly source: string; readonly options: readonly string[] };
    }
  | { readonly is: 'device'; readonly path: string };

type OwnPlace = Extract<VolumePlace, { is: 'own' }>;

/** The names of PersistentVolumes that we provision. */
const HANDLE = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

export function findVolumePlace(
  volume: PersistentVolume,
  { nodeName, nodeDir, sharedDir }: Pick<VolumesHost, 'nodeName' | 'nodeDir' | 'sharedDir'>,
): VolumePlace | VolumeRefusal {
  const { spec } = volume;
  const name = volume.metadata.name ?? '';
  if (spec.csi?.driver === LOCAL_DRIVER) {
    if (isSharedVolume(volume)) return ownPlaceBelow(sharedDir, volume);
    // Creating an empty disk on the wrong node would make the data appear lost.
    const dataNode = dataNodeOf(volume);
    if (dataNode !== nodeName) {
      return failedRefusal(
        'VolumeOnOtherNode',
        `The data of PersistentVolume "${name}" is on node "${dataNode ?? ''}"; this is node "${nodeName}"`,
      );
    }
    return ownPlaceBelow(nodeDir, volume);
  }

  const block = spec.volumeMode === 'Block';
  const bytes = parseBytes(spec.capacity['storage'] ?? 0);
  const path = spec.local?.path ?? spec.hostPath?.path;
  if (path !== undefined && path.startsWith('/')) {
    const create = spec.hostPath?.type === 'DirectoryOrCreate';
    return block ? { is: 'device', path } : { is: 'directory', path, bytes, create };
  }
  const { nfs } = spec;
  if (nfs !== undefined && !block && isSafeNfsSource(nfs) && isFileName(name)) {
    const options = [...(spec.mountOptions ?? []), ...(nfs.readOnly === true ? ['ro'] : [])];
    const mount = { source: `${nfs.server}:${nfs.path}`, options };
    return { is: 'directory', path: posix.join(nodeDir, NFS_DIR, name), bytes, create: false, mount };
  }
  return failedRefusal(
    'VolumeUnsupported',
    `Cannot use PersistentVolume "${name}": this node does not support its source (${describeSource(volume)}); ` +
      `expected ${LOCAL_PROVISIONER}, local, hostPath or nfs`,
  );
}

/** Reports whether server and path are safe as an argument of mount. */
function isSafeNfsSource({ server, path }: { readonly server: string; readonly path: string }): boolean {
  return /^[a-zA-Z0-9[][a-zA-Z0-9.:\]-]*$/.test(server) && /^\/[^\0\n]*$/.test(path);
}

/** Returns the place of a volume of LOCAL_PROVISIONER below `root`, without checking which node has the data. */
export function ownPlaceBelow(root: string, { metadata, spec }: PersistentVolume): OwnPlace | VolumeRefusal {
  const { volumeHandle: name = '' } = spec.csi ?? {};
  if (!HANDLE.test(name) || !isFileName(name)) {
    return failedRefusal(
      'VolumeUnsupported',
      `Cannot use PersistentVolume "${metadata.name}": its handle ${JSON.stringify(name)} is not a DNS name`,
    );
  }
  return {
    is: 'own',
    root,
    name,
    block: spec.volumeMode === 'Block',
    bytes: parseBytes(spec.capacity['storage'] ?? 0),
  };
}

/** Reports whether every node can access the data. */
export function isSharedVolume({ spec }: PersistentVolume): boolean {
  return spec.csi?.volumeAttributes?.['scope'] === 'shared';
}

/** Returns the node that has the data. The annotation follows the guest; the volume attribute is the initial node. */
export function dataNodeOf({ metadata, spec }: PersistentVolume): string | undefined {
  return metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? spec.csi?.volumeAttributes?.['node'];
}

/** Returns the handle of the snapshot from which the volume is created, if any. */
export function snapshotHandleOf({ spec }: PersistentVolume): string | undefined {
  return spec.csi?.volumeAttributes?.['snapshot'];
}

export function isReadOnlyVolume({ spec }: PersistentVolume): boolean {
  return (
    spec.csi?.readOnly === true ||
    spec.nfs?.readOnly === true ||
    spec.accessModes.every((mode) => mode === 'ReadOnlyMany')
  );
}

const NOT_A_SOURCE = new Set([
  'capacity',
  'accessModes',
  'volumeMode',
  'storageClassName',
  'persistentVolumeReclaimPolicy',
  'claimRef',
  'nodeAffinity',
  'mountOptions',
  'volumeAttributesClassName',
]);

function describeSource({ spec }: PersistentVolume): string {
  if (spec.csi !== undefined) return `csi driver ${spec.csi.driver}`;
  return Object.keys(spec).find((key) => !NOT_A_SOURCE.has(key)) ?? 'without a source';
}
