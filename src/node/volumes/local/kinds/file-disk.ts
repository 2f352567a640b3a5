/**
 * Prepares configMap, secret, serviceAccount and downwardAPI volumes: a small CD image for each domain with one file
 * for each key, with the content at the start of the guest.
 */
import type { VmiVolume } from '#api/domain/volume.ts';
import { readMetadataPath } from '#kube/metadata-path.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';
import { writeIsoVolume } from '#node/volumes/local/cloud-init/cloud-init.ts';
import { buildIsoImage, MAX_FILES, MAX_NAME } from '#node/volumes/local/cloud-init/iso-image.ts';
import {
  failedRefusal,
  isVolumeRefusal,
  missingRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

/** KubeVirt's label. */
const DEFAULT_LABEL = 'cfgdata';
const ROOT_CA = 'kube-root-ca.crt';
const NAME = /^[A-Za-z0-9._-]+$/;
/** More than an API object can have. */
const MAX_BYTES = 4 * 1024 * 1024;

type Files = ReadonlyMap<string, Buffer>;

export async function prepareFileDisk(
  volume: VmiVolume,
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  host: VolumesHost,
): Promise<PreparedDisk> {
  const files = await readFiles(volume, vmi, lookups);
  if (isVolumeRefusal(files)) return files;
  const problem = checkFiles(files);
  if (problem !== undefined) return waitingRefusal('FailedMount', `volume "${volume.name}": ${problem}`);
  const { volumeLabel } = volume.configMap ?? volume.secret ?? volume.downwardAPI ?? {};
  return writeIsoVolume(volume.name, buildIsoImage(volumeLabel || DEFAULT_LABEL, files), vmi.metadata.uid, host);
}

function checkFiles(files: Files): string | undefined {
  if (files.size > MAX_FILES) return `it has ${files.size} keys; expected at most ${MAX_FILES}`;
  const invalidName = [...files.keys()].find((name) => !NAME.test(name) || name.length > MAX_NAME);
  if (invalidName !== undefined)
    return `the key ${JSON.stringify(invalidName)} is not a file name of at most ${MAX_NAME} characters`;
  const bytes = [...files.values()].reduce((sum, content) => sum + content.length, 0);
  return bytes > MAX_BYTES ? `it has ${bytes} bytes; expected at most ${MAX_BYTES}` : undefined;
}

async function readFiles(
  { name, configMap, secret, serviceAccount, downwardAPI }: VmiVolume,
  { metadata }: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
): Promise<Files | VolumeRefusal> {
  if (configMap !== undefined) {
    const found = await lookups.configMap(configMap.name);
    if (found === undefined) return emptyIfOptional(configMap.optional, `configmap "${configMap.name}" not found`);
    return new Map([...textFiles(found.data), ...base64Files(found.binaryData)]);
  }
  if (secret !== undefined) {
    const found = await lookups.secret(secret.secretName);
    return found === undefined
      ? emptyIfOptional(secret.optional, `secret "${secret.secretName}" not found`)
      : base64Files(found.data);
  }
  if (serviceAccount !== undefined)
    return readAccountFiles(serviceAccount.serviceAccountName, metadata.namespace, lookups);
  if (downwardAPI !== undefined) {
    return new Map(
      (downwardAPI.fields ?? []).map(({ path, fieldRef }) => [
        path,
        Buffer.from(readMetadataPath(metadata, fieldRef?.fieldPath ?? '')),
      ]),
    );
  }
  return failedRefusal('VolumeUnsupported', `Cannot prepare volume "${name}": this node does not support its kind`);
}

/** Returns the files that programs in pods find for their account. */
async function readAccountFiles(
  account: string,
  namespace: string | undefined,
  lookups: VolumeLookups,
): Promise<Files | VolumeRefusal> {
  const token = await lookups.token?.(account);
  if (token === undefined) return missingRefusal('FailedMount', `serviceaccount "${account}" not found`);
  const ca = (await lookups.configMap(ROOT_CA))?.data?.['ca.crt'];
  return new Map([
    ['token', Buffer.from(token)],
    ['namespace', Buffer.from(namespace ?? '')],
    ...(ca === undefined ? [] : ([['ca.crt', Buffer.from(ca)]] as const)),
  ]);
}

/** Returns no files if the object is optional: the disk is part of the machine, so it is present but empty. */
function emptyIfOptional(optional: boolean | undefined, message: string): Files | VolumeRefusal {
  return optional === true ? new Map() : missingRefusal('FailedMount', message);
}

const textFiles = (data: Readonly<Record<string, string>> = {}): Files =>
  new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]));

const base64Files = (data: Readonly<Record<string, string>> = {}): Files =>
  new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]));
