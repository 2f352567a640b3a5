/**
 * configMap, secret, serviceAccount, downwardAPI: a small CD image for each domain with a file for each of their keys, as
 * they are when the guest starts.
 */
import type { Volume } from '#api/domain/volume.ts';
import { readMetadataPath } from '#api/metadata-path.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeLookups } from '#node/volumes-port.ts';
import { writeCloudInit } from './cloud-init/cloud-init.ts';
import { isoImage, MAX_FILES, MAX_NAME } from './cloud-init/iso-image.ts';
import { failed, isRefusal, missing, waiting, type Prepared, type Refusal, type VolumesHost } from './volumes-host.ts';

/** As KubeVirt labels them. */
const DEFAULT_LABEL = 'cfgdata';
const ROOT_CA = 'kube-root-ca.crt';
const NAME = /^[A-Za-z0-9._-]+$/;
/** What an object of the API may have, and more. */
const MAX_BYTES = 4 * 1024 * 1024;

type Files = ReadonlyMap<string, Buffer>;

export async function prepareFiles(
  volume: Volume,
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  host: VolumesHost,
): Promise<Prepared> {
  const files = await filesOf(volume, vmi, lookups);
  if (isRefusal(files)) return files;
  const fault = filesFault(files);
  if (fault !== undefined) return waiting('FailedMount', `volume "${volume.name}": ${fault}`);
  const { volumeLabel } = volume.configMap ?? volume.secret ?? volume.downwardAPI ?? {};
  return writeCloudInit(volume.name, isoImage(volumeLabel || DEFAULT_LABEL, files), vmi.metadata.uid, host);
}

function filesFault(files: Files): string | undefined {
  if (files.size > MAX_FILES) return `a disk holds at most ${MAX_FILES} files, and these are ${files.size}`;
  const odd = [...files.keys()].find((name) => !NAME.test(name) || name.length > MAX_NAME);
  if (odd !== undefined) return `the key ${JSON.stringify(odd)} is longer than ${MAX_NAME} characters, or no file name`;
  const bytes = [...files.values()].reduce((sum, content) => sum + content.length, 0);
  return bytes > MAX_BYTES ? `a disk holds at most ${MAX_BYTES} bytes` : undefined;
}

async function filesOf(
  { name, configMap, secret, serviceAccount, downwardAPI }: Volume,
  { metadata }: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
): Promise<Files | Refusal> {
  if (configMap !== undefined) {
    const found = await lookups.configMap(configMap.name);
    if (found === undefined) return absent(configMap.optional, `configmap "${configMap.name}" not found`);
    return new Map([...texts(found.data), ...binaries(found.binaryData)]);
  }
  if (secret !== undefined) {
    const found = await lookups.secret(secret.secretName);
    return found === undefined
      ? absent(secret.optional, `secret "${secret.secretName}" not found`)
      : binaries(found.data);
  }
  if (serviceAccount !== undefined) return accountFiles(serviceAccount.serviceAccountName, metadata.namespace, lookups);
  if (downwardAPI !== undefined) {
    return new Map(
      (downwardAPI.fields ?? []).map(({ path, fieldRef }) => [
        path,
        Buffer.from(readMetadataPath(metadata, fieldRef?.fieldPath ?? '')),
      ]),
    );
  }
  return failed('VolumeUnsupported', `Volume "${name}" is of a sort that this node does not know`);
}

/** As programs in pods find it. */
async function accountFiles(
  account: string,
  namespace: string | undefined,
  lookups: VolumeLookups,
): Promise<Files | Refusal> {
  const token = await lookups.token?.(account);
  if (token === undefined) return missing('FailedMount', `serviceaccount "${account}" not found`);
  const ca = (await lookups.configMap(ROOT_CA))?.data?.['ca.crt'];
  return new Map([
    ['token', Buffer.from(token)],
    ['namespace', Buffer.from(namespace ?? '')],
    ...(ca === undefined ? [] : ([['ca.crt', Buffer.from(ca)]] as const)),
  ]);
}

/** A disk is part of the machine: where nothing is, it is there, and empty. */
function absent(optional: boolean | undefined, message: string): Files | Refusal {
  return optional === true ? new Map() : missing('FailedMount', message);
}

const texts = (data: Readonly<Record<string, string>> = {}): Files =>
  new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]));

const binaries = (data: Readonly<Record<string, string>> = {}): Files =>
  new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]));
