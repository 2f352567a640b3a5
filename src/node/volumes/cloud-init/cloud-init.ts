/** cloudInitNoCloud: a small CD image for each domain, with what cloud-init in the guest looks for. */
import { join } from 'node:path';
import type { CloudInitNoCloud } from '#api/domain/volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeLookups } from '#node/volumes-port.ts';
import { replaceFile } from '../disk-image.ts';
import { domainDirectory } from '../domain-files.ts';
import { isRefusal, waiting, type Prepared, type Refusal, type VolumesHost } from '../volumes-host.ts';
import { isoImage } from './iso-image.ts';

/** By this name cloud-init finds its data source. */
const VOLUME_ID = 'cidata';
/** A secret may be written either way. */
const USER_KEYS = ['userdata', 'userData'];
const NETWORK_KEYS = ['networkdata', 'networkData'];
const HOSTNAME_MAX = 63;

export async function prepareCloudInit(
  { name, source }: { name: string; source: CloudInitNoCloud },
  vmi: Stored<VirtualMachineInstance>,
  lookups: Pick<VolumeLookups, 'secret'>,
  host: VolumesHost,
): Promise<Prepared> {
  const data = await resolveData(source, lookups);
  if (isRefusal(data)) return data;
  return writeCloudInit(name, isoImage(VOLUME_ID, cloudInitFiles(data, vmi)), vmi.metadata.uid, host);
}

/** A guest that comes from another node has the image that it had there. */
export async function writeCloudInit(
  name: string,
  image: Buffer,
  domainId: string,
  host: VolumesHost,
): Promise<Prepared> {
  await using directory = await domainDirectory(host, domainId);
  const file = `${name}.iso`;
  await replaceFile(directory, file, image, host.guestUser);
  // Not read-only: it is the domain's own, and disks on some buses cannot be.
  const path = join(directory.path, file);
  return { is: 'ready', volume: { source: { path, format: 'raw' }, readonly: false, cacheNone: false } };
}

interface CloudInitData {
  readonly userData: Buffer;
  readonly networkData: Buffer | undefined;
}

/** Pure. */
export function cloudInitFiles(
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
): Promise<CloudInitData | Refusal> {
  const userSecret = await secretOf(source.secretRef?.name, lookups);
  if (isRefusal(userSecret)) return userSecret;
  const networkSecret = await secretOf(source.networkDataSecretRef?.name, lookups);
  if (isRefusal(networkSecret)) return networkSecret;

  const userData = given(source.userData, source.userDataBase64) ?? keyOf(userSecret, USER_KEYS);
  if (userData === undefined && source.secretRef !== undefined) {
    return waiting('FailedMount', `secret "${source.secretRef.name}" has no key userdata`);
  }
  const networkData =
    given(source.networkData, source.networkDataBase64) ??
    keyOf(networkSecret, NETWORK_KEYS) ??
    keyOf(userSecret, NETWORK_KEYS);
  if (networkData === undefined && source.networkDataSecretRef !== undefined) {
    return waiting('FailedMount', `secret "${source.networkDataSecretRef.name}" has no key networkdata`);
  }
  return { userData: userData ?? Buffer.alloc(0), networkData };
}

async function secretOf(
  name: string | undefined,
  lookups: Pick<VolumeLookups, 'secret'>,
): Promise<Secret | Refusal | undefined> {
  if (name === undefined) return undefined;
  return (await lookups.secret(name)) ?? waiting('FailedMount', `secret "${name}" not found`);
}

function given(text: string | undefined, base64: string | undefined): Buffer | undefined {
  if (text !== undefined && text !== '') return Buffer.from(text);
  return base64 === undefined || base64 === '' ? undefined : Buffer.from(base64, 'base64');
}

function keyOf(secret: Secret | undefined, keys: readonly string[]): Buffer | undefined {
  for (const key of keys) {
    const value = secret?.data !== undefined && Object.hasOwn(secret.data, key) ? secret.data[key] : undefined;
    if (value !== undefined) return Buffer.from(value, 'base64');
  }
  return undefined;
}
