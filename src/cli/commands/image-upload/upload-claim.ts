/** Creates or checks the claim for an upload, and releases it for guests when the upload is complete. */
import { BOOT_FIRMWARE_ANNOTATION, encodeBootFirmware } from '#api/storage/boot-firmware.ts';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError, explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import type { LocalImage } from '#cli/commands/image-upload/local-image.ts';
import { bytesText } from '#lib/terminal/progress-text.ts';
import { errorMessage } from '#lib/error-message.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { findObject, readObject } from '#cli/connection/vm-objects.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { parseQuantity, findQuantityError, quantityToNumber } from '#kube/quantity.ts';

export interface UploadClaimOptions {
  readonly name: string;
  readonly size: string | undefined;
  readonly storageClass: string | undefined;
  readonly accessMode: string | undefined;
  readonly volumeMode: 'Block' | 'Filesystem' | undefined;
  readonly noCreate: boolean;
}

type Api = Pick<ApiConnection, 'get' | 'post' | 'patch' | 'remove' | 'namespace'>;

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'] as const;

export interface UploadClaim {
  readonly name: string;
  /** The uid of the claim if it was created for this upload. */
  readonly newUid?: string;
  /** True if the claim was already waiting for content. */
  readonly wasAwaitingUpload: boolean;
}

/** Creates the claim, or marks an existing one as waiting for content. Throws CommandError and changes nothing then. */
export async function prepareClaim(api: Api, options: UploadClaimOptions, image: LocalImage): Promise<UploadClaim> {
  const { name, noCreate } = options;
  const find = noCreate ? readObject<PersistentVolumeClaim> : findObject<PersistentVolumeClaim>;
  const found = await explainFailure(
    `Cannot upload to PersistentVolumeClaim ${name}: `,
    find(api, PERSISTENT_VOLUME_CLAIMS, name),
  );
  if (found === undefined) {
    const claim = buildUploadClaim(options, image);
    await checkStorageClass(api, name, options.storageClass);
    const created = await api.post(collectionPath(PERSISTENT_VOLUME_CLAIMS, api.namespace), claim);
    return { name, newUid: (created as Stored).metadata.uid, wasAwaitingUpload: true };
  }
  const error = findSizeError(image, capacityOf(found), `PersistentVolumeClaim ${name}`);
  if (error !== undefined) throw new CommandError(error);
  if (found.metadata.deletionTimestamp !== undefined) {
    throw new CommandError(`Cannot upload to PersistentVolumeClaim ${name}: it is being deleted`);
  }
  const wasAwaitingUpload = found.metadata.annotations?.[UPLOAD_ANNOTATION] === 'true';
  if (!wasAwaitingUpload) await annotate(api, name, { [UPLOAD_ANNOTATION]: 'true' }, found.metadata.uid);
  return { name, wasAwaitingUpload };
}

/**
 * Throws if the class does not exist. Does nothing if there are volumes of that class, or if the user may not read these
 * kinds: the server checks it again.
 */
async function checkStorageClass(api: Api, claim: string, name: string | undefined): Promise<void> {
  if (!name) return;
  try {
    if ((await findObject(api, STORAGE_CLASSES, name)) !== undefined) return;
    const ignored = () => {};
    const volumes = { path: collectionPath(PERSISTENT_VOLUMES) };
    const manual = await listCollection(api, volumes, (volume) => isOfClass(volume, name) || undefined, ignored);
    if (manual.length > 0) return;
    const known = await listCollection(api, { path: collectionPath(STORAGE_CLASSES) }, nameOfObject, ignored);
    const choice = known.length === 0 ? 'there is none; create one' : `choose one of ${known.sort().join(', ')}`;
    throw new CommandError(
      `Cannot create PersistentVolumeClaim ${claim}: storage class "${name}" does not exist; ${choice}`,
    );
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
  }
}

const isOfClass = (volume: unknown, name: string) => (volume as PersistentVolume).spec?.storageClassName === name;
const nameOfObject = (object: unknown) => (object as Stored).metadata.name;

/** Builds a new claim. Pure; throws CommandError. */
export function buildUploadClaim(options: UploadClaimOptions, image: LocalImage): PersistentVolumeClaim {
  const { name, size, storageClass, accessMode = 'ReadWriteOnce', volumeMode } = options;
  if (size === undefined) throw new UsageError(`the claim ${name} does not exist; specify its size with --size`);
  if (findQuantityError(size) !== undefined || bytesOf(size) <= 0 || bytesOf(size) > Number.MAX_SAFE_INTEGER) {
    throw new UsageError(`invalid size ${JSON.stringify(size)}: expected a quantity like 10Gi or 500Mi`);
  }
  const mode = ACCESS_MODES.find((one) => one === accessMode);
  if (mode === undefined) {
    throw new UsageError(`invalid access mode ${JSON.stringify(accessMode)}: expected ${ACCESS_MODES.join(', ')}`);
  }
  const error = findSizeError(image, bytesOf(size), `--size=${size}`);
  if (error !== undefined) throw new CommandError(error);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, annotations: { [UPLOAD_ANNOTATION]: 'true' } },
    spec: {
      accessModes: [mode],
      ...(volumeMode && { volumeMode }),
      ...(storageClass !== undefined && { storageClassName: storageClass }),
      resources: { requests: { storage: size } },
    },
  };
}

function findSizeError({ path, virtualSize }: LocalImage, bytes: number, what: string): string | undefined {
  if (virtualSize <= bytes) return undefined;
  const needs = `${virtualSize} bytes (${bytesText(virtualSize)})`;
  return `Cannot upload ${path}: its disk needs ${needs}, but ${what} has ${bytes} bytes (${bytesText(bytes)})`;
}

function capacityOf({ spec, status }: PersistentVolumeClaim): number {
  return bytesOf(String(status?.capacity?.['storage'] ?? spec.resources?.requests?.['storage'] ?? '0'));
}

const bytesOf = (quantity: string) => quantityToNumber(parseQuantity(quantity));

/** Deletes the claim that was created for an upload that was refused. Returns an error message if that fails. */
export async function removeNewClaim(api: Api, name: string, uid: string): Promise<string | undefined> {
  try {
    await api.remove(objectPath(PERSISTENT_VOLUME_CLAIMS, { namespace: api.namespace, name }), uid);
    return undefined;
  } catch (error) {
    return isApiError(error, 'NotFound') ? undefined : errorMessage(error);
  }
}

/** Allows guests to use the claim, whose content has not changed. */
export async function releaseClaim(api: Api, name: string): Promise<void> {
  await annotate(api, name, { [UPLOAD_ANNOTATION]: null });
}

/** Allows guests to use the claim, and records the firmware that boots its new content. */
export async function completeClaim(api: Api, name: string, { boot }: LocalImage): Promise<void> {
  await annotate(api, name, {
    [UPLOAD_ANNOTATION]: null,
    [BOOT_FIRMWARE_ANNOTATION]: encodeBootFirmware(boot) ?? null,
  });
}

async function annotate(
  api: Api,
  name: string,
  annotations: Readonly<Record<string, string | null>>,
  uid?: string,
): Promise<void> {
  const path = objectPath(PERSISTENT_VOLUME_CLAIMS, { namespace: api.namespace, name });
  await api.patch(path, { metadata: { ...(uid !== undefined && { uid }), annotations } });
}
