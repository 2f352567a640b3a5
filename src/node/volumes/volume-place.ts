/** Where the data of a PersistentVolume is on this node. Pure. */
import { posix } from 'node:path';
import { LOCAL_DRIVER, LOCAL_PROVISIONER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { isFileName } from './directory.ts';
import { bytesOf, failed, type Refusal, type VolumesHost } from './volumes-host.ts';

export const VOLUMES_DIR = 'volumes';
/** Where volumes of other machines are mounted. */
export const NFS_DIR = 'nfs';
export const DISK_IMAGE = 'disk.img';
/** Beside it, or in its place: the state of a VM (state-volume.ts). */
export const STATE_DIR = 'state';

export type VolumePlace =
  /** A directory `name` of our own in `<root>/volumes`. */
  | {
      readonly is: 'own';
      readonly root: string;
      readonly name: string;
      readonly block: boolean;
      readonly bytes: number;
    }
  /** A directory of an administrator with an image in it; one of another machine is mounted there first. */
  | {
      readonly is: 'directory';
      readonly path: string;
      readonly bytes: number;
      readonly create: boolean;
      readonly mount?: { readonly source: string; readonly options: readonly string[] };
    }
  | { readonly is: 'device'; readonly path: string };

type OwnPlace = Extract<VolumePlace, { is: 'own' }>;

/** As a PersistentVolume that we provision is named. */
const HANDLE = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

export function volumePlace(
  volume: PersistentVolume,
  { nodeName, nodeDir, sharedDir }: Pick<VolumesHost, 'nodeName' | 'nodeDir' | 'sharedDir'>,
): VolumePlace | Refusal {
  const { spec } = volume;
  const name = volume.metadata.name ?? '';
  if (spec.csi?.driver === LOCAL_DRIVER) {
    if (isShared(volume)) return ownPlaceIn(sharedDir, volume);
    // An empty disk on the wrong node would look as if the data were lost.
    const holder = holderOf(volume);
    if (holder !== nodeName) {
      return failed(
        'VolumeOnOtherNode',
        `The data of PersistentVolume "${name}" is on node "${holder ?? ''}"; this is node "${nodeName}"`,
      );
    }
    return ownPlaceIn(nodeDir, volume);
  }

  const block = spec.volumeMode === 'Block';
  const bytes = bytesOf(spec.capacity['storage'] ?? 0);
  const path = spec.local?.path ?? spec.hostPath?.path;
  if (path !== undefined && path.startsWith('/')) {
    const create = spec.hostPath?.type === 'DirectoryOrCreate';
    return block ? { is: 'device', path } : { is: 'directory', path, bytes, create };
  }
  const { nfs } = spec;
  if (nfs !== undefined && !block && isNfs(nfs) && isFileName(name)) {
    const options = [...(spec.mountOptions ?? []), ...(nfs.readOnly === true ? ['ro'] : [])];
    const mount = { source: `${nfs.server}:${nfs.path}`, options };
    return { is: 'directory', path: posix.join(nodeDir, NFS_DIR, name), bytes, create: false, mount };
  }
  return failed(
    'VolumeUnsupported',
    `PersistentVolume "${name}" is of a sort that this node cannot use (${sourceOf(volume)}); ` +
      `it takes those of ${LOCAL_PROVISIONER}, local, hostPath and nfs`,
  );
}

/** Nothing that a program could take for anything but a server and its path. */
function isNfs({ server, path }: { readonly server: string; readonly path: string }): boolean {
  return /^[a-zA-Z0-9[][a-zA-Z0-9.:\]-]*$/.test(server) && /^\/[^\0\n]*$/.test(path);
}

/** The directory of a volume of ours below `root`, whichever node holds the data. */
export function ownPlaceIn(root: string, { metadata, spec }: PersistentVolume): OwnPlace | Refusal {
  const { volumeHandle: name = '' } = spec.csi ?? {};
  if (!HANDLE.test(name) || !isFileName(name)) {
    return failed('VolumeUnsupported', `PersistentVolume "${metadata.name}" has the handle ${JSON.stringify(name)}`);
  }
  return { is: 'own', root, name, block: spec.volumeMode === 'Block', bytes: bytesOf(spec.capacity['storage'] ?? 0) };
}

/** Whether every node reaches it. */
export function isShared({ spec }: PersistentVolume): boolean {
  return spec.csi?.volumeAttributes?.['scope'] === 'shared';
}

/** The node on which the data lies. It moves with its guest: what the volume says of its making counts only at first. */
export function holderOf({ metadata, spec }: PersistentVolume): string | undefined {
  return metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? spec.csi?.volumeAttributes?.['node'];
}

/** Of the snapshot that the volume is made from. */
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

function sourceOf({ spec }: PersistentVolume): string {
  if (spec.csi !== undefined) return `csi driver ${spec.csi.driver}`;
  return Object.keys(spec).find((key) => !NOT_A_SOURCE.has(key)) ?? 'without a source';
}
