/**
 * Prepares cloudInitNoCloud volumes: a small CD image for each domain with the files of cloud-init's NoCloud data
 * source.
 */
import { join } from 'node:path';
import type { CloudInitNoCloud } from '#api/domain/volume.ts';
import { inlineCloudInitData, NETWORK_DATA_KEYS, readSecretKey, USER_DATA_KEYS } from '#api/storage/cloud-init-data.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';
import { replaceFile } from '#node/volumes/local/content/disk-image.ts';
import { openDomainDirectory } from '#node/volumes/local/kinds/domain-files.ts';
import {
  isVolumeRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';
import { buildIsoImage } from '#node/volumes/local/cloud-init/iso-image.ts';

/** The volume id by which cloud-init finds its data source. */
const VOLUME_ID = 'cidata';
const HOSTNAME_MAX = 63;

export async function prepareCloudInit(
  { name, source }: { name: string; source: CloudInitNoCloud },
  vmi: Stored<VirtualMachineInstance>,
  lookups: Pick<VolumeLookups, 'secret'>,
  host: VolumesHost,
): Promise<PreparedDisk> {
  const data = await resolveData(source, lookups);
  if (isVolumeRefusal(data)) return data;
  return writeIsoVolume(name, buildIsoImage(VOLUME_ID, buildCloudInitFiles(data, vmi)), vmi.metadata.uid, host);
}

/**
 * Writes an ISO image as a disk of the domain. A guest that comes from another node keeps the image that it had there.
 */
export async function writeIsoVolume(
  name: string,
  image: Buffer,
  domainId: string,
  host: VolumesHost,
): Promise<PreparedDisk> {
  await using directory = await openDomainDirectory(host, domainId);
  const file = `${name}.iso`;
  await replaceFile(directory, file, image);
  // Not read-only, because disks on some buses cannot be; no other domain uses the image.
  const path = join(directory.path, file);
  return { is: 'ready', volume: { source: { path, format: 'raw' }, readonly: false, cacheNone: false } };
}

interface CloudInitData {
  readonly userData: Buffer;
  readonly networkData: Buffer | undefined;
}

/** Pure. */
export function buildCloudInitFiles(
  { userData, networkData }: CloudInitData,
  { metadata, spec }: Pick<Stored<VirtualMachineInstance>, 'metadata' | 'spec'>,
): ReadonlyMap<string, Buffer> {
  const hostname = spec.hostname ?? (metadata.name.split('.')[0] ?? '').slice(0, HOSTNAME_MAX);
  const metaData = { 'instance-id': spec.domain.firmware?.uuid ?? metadata.uid, 'local-hostname': hostname };
  const files = new Map([
    ['meta-data', Buffer.from(`${JSON.stringify(metaData)}\n`)],
    ['user-data', userData],
  ]);
  if (networkData !== undefined) files.set('network-config', networkData);
  return files;
}

async function resolveData(
  source: CloudInitNoCloud,
  lookups: Pick<VolumeLookups, 'secret'>,
): Promise<CloudInitData | VolumeRefusal> {
  const userSecret = await lookUpSecret(source.secretRef?.name, lookups);
  if (isVolumeRefusal(userSecret)) return userSecret;
  const networkSecret = await lookUpSecret(source.networkDataSecretRef?.name, lookups);
  if (isVolumeRefusal(networkSecret)) return networkSecret;

  const userData =
    inlineCloudInitData(source.userData, source.userDataBase64) ?? readSecretKey(userSecret, USER_DATA_KEYS);
  if (userData === undefined && source.secretRef !== undefined) {
    return waitingRefusal('FailedMount', `secret "${source.secretRef.name}" has no key userdata`);
  }
  const networkData =
    inlineCloudInitData(source.networkData, source.networkDataBase64) ??
    readSecretKey(networkSecret, NETWORK_DATA_KEYS) ??
    readSecretKey(userSecret, NETWORK_DATA_KEYS);
  if (networkData === undefined && source.networkDataSecretRef !== undefined) {
    return waitingRefusal('FailedMount', `secret "${source.networkDataSecretRef.name}" has no key networkdata`);
  }
  return { userData: userData ?? Buffer.alloc(0), networkData };
}

async function lookUpSecret(
  name: string | undefined,
  lookups: Pick<VolumeLookups, 'secret'>,
): Promise<Secret | VolumeRefusal | undefined> {
  if (name === undefined) return undefined;
  return (await lookups.secret(name)) ?? waitingRefusal('FailedMount', `secret "${name}" not found`);
}
