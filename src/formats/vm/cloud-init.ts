/** Converts the cloud-init data of a disk between API objects and descriptions. Pure. */
import type { CloudInitNoCloud } from '#api/domain/volume.ts';
import { inlineCloudInitData, NETWORK_DATA_KEYS, readSecretKey, USER_DATA_KEYS } from '#api/storage/cloud-init-data.ts';
import type { Findings } from '#formats/findings.ts';
import type { CloudInitPart, DescribedCloudInit } from '#formats/machine.ts';
import { SECRETS, type Secret } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';

/** The longest text that the API accepts as userData and networkData. */
const MAX_TEXT = 65_536;

/** Describes the data of a volume. That of Secrets is not included. */
export function describeCloudInit(source: CloudInitNoCloud): DescribedCloudInit {
  const part = (inline: Buffer | undefined, secret: string | undefined): CloudInitPart | undefined => {
    if (inline !== undefined) return { base64: inline.toString('base64') };
    return secret === undefined ? undefined : { secret };
  };
  const userData = part(inlineCloudInitData(source.userData, source.userDataBase64), source.secretRef?.name);
  const networkData = part(
    inlineCloudInitData(source.networkData, source.networkDataBase64),
    source.networkDataSecretRef?.name,
  );
  return { ...(userData && { userData }), ...(networkData && { networkData }) };
}

/** Returns the names of the Secrets with data that the description does not contain. */
export function listMissingSecrets({ userData, networkData }: DescribedCloudInit): string[] {
  const missing = [userData, networkData].flatMap((part) => (part?.base64 === undefined ? (part?.secret ?? []) : []));
  return [...new Set(missing)];
}

/** Adds the data of Secrets. As at a start, the Secret with the user data can also contain the network data. */
export function includeSecrets(
  { userData, networkData }: DescribedCloudInit,
  secrets: ReadonlyMap<string, Secret>,
): DescribedCloudInit {
  const include = (part: CloudInitPart | undefined, keys: readonly string[]): CloudInitPart | undefined => {
    if (part?.secret === undefined || part.base64 !== undefined) return part;
    const data = readSecretKey(secrets.get(part.secret), keys);
    return data === undefined ? part : { ...part, base64: data.toString('base64') };
  };
  const own = include(networkData, NETWORK_DATA_KEYS);
  const implied = include(userData?.secret === undefined ? undefined : { secret: userData.secret }, NETWORK_DATA_KEYS);
  const network = own ?? (implied?.base64 === undefined ? undefined : implied);
  const user = include(userData, USER_DATA_KEYS);
  return { ...(user && { userData: user }), ...(network && { networkData: network }) };
}

interface CloudInitOptions {
  /** The name of the VM. */
  readonly name: string;
  readonly namespace: string;
  readonly secretNames?: ReadonlyMap<string, string>;
}

/**
 * Builds the volume, and a Secret with the data that was in one. References of the file to Secrets are not used: a file
 * from someone else could name a Secret of another VM. Instead, the name follows from those of the VM and the disk.
 */
export function cloudInitManifests(
  disk: string,
  { userData, networkData }: DescribedCloudInit,
  { name: vm, namespace, secretNames }: CloudInitOptions,
  findings: Findings,
): { readonly source: CloudInitNoCloud; readonly secret?: Secret } {
  const existing = secretNames?.get(disk);
  const name = existing ?? `${vm}-${disk}-cloudinit`;
  const isSecret = (part: CloudInitPart | undefined) => part?.secret !== undefined;
  const data = {
    ...(isSecret(userData) && userData?.base64 !== undefined && { [USER_DATA_KEYS[0]]: userData.base64 }),
    ...(isSecret(networkData) && networkData?.base64 !== undefined && { [NETWORK_DATA_KEYS[0]]: networkData.base64 }),
  };
  const missing = listMissingSecrets({ ...(userData && { userData }), ...(networkData && { networkData }) });
  if (existing === undefined && missing.length > 0) {
    findings.addNote(
      `the file does not contain the cloud-init data of the disk ${disk}, which is in the Secret ${missing.join(', ')}; create the Secret ${name} with it before the start, or name one with --secret ${disk}=SECRET`,
    );
  }
  const source: CloudInitNoCloud = {
    ...(isSecret(userData) ? { secretRef: { name } } : inlineFields('userData', userData)),
    ...(isSecret(networkData) ? { networkDataSecretRef: { name } } : inlineFields('networkData', networkData)),
  };
  if (existing !== undefined || Object.keys(data).length === 0) return { source };
  const secret: Secret = {
    apiVersion: apiVersionOf(SECRETS),
    kind: SECRETS.kind,
    metadata: { name, namespace },
    type: 'Opaque',
    data,
  };
  return { source, secret };
}

/** Uses the readable field if the data is a text. */
function inlineFields(field: 'userData' | 'networkData', part: CloudInitPart | undefined): CloudInitNoCloud {
  if (part?.base64 === undefined) return {};
  const bytes = Buffer.from(part.base64, 'base64');
  const text = bytes.toString('utf8');
  const isText = text.length <= MAX_TEXT && !text.includes('\u0000') && Buffer.from(text).equals(bytes);
  return isText ? { [field]: text } : { [`${field}Base64`]: part.base64 };
}
