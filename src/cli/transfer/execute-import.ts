/** Executes an import plan step by step. If a step fails, deletes what was created and reports it. */
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { uploadDisk } from '#cli/transfer/disk-transfer.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import type { ImportPlan, Upload } from '#cli/transfer/import-plan.ts';
import type { ImportSource } from '#cli/transfer/import-source.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import { trackTransfer } from '#lib/terminal/track-transfer.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS, SECRETS } from '#kube/core-kinds.ts';
import { isRecord, type KubeObject, type ResourceType } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get' | 'post' | 'patch' | 'remove' | 'openWebSocket' | 'namespace'>;

interface CreatedObject {
  readonly what: string;
  readonly path: string;
  readonly uid: string;
}

/** Executes the plan. Throws CommandError, whose message lists all objects that could not be deleted again. */
export async function executeImport(
  api: Api,
  plan: ImportPlan,
  files: ImportSource['files'],
  status: StatusOutput,
): Promise<void> {
  const created: CreatedObject[] = [];
  try {
    const { name } = plan.vm.metadata;
    const vmUid = await explainFailure(`Cannot import VM ${name}: `, createObjects(api, plan, created));
    await uploadContent(api, plan, files, { status, vmUid });
    await protectIfPlanned(api, plan);
  } catch (cause) {
    throw await rollBack(api, created, cause);
  }
}

/**
 * Creates claims, VM and Secrets, which are deleted with the VM. A dry run of the VM comes first, because it finds most errors.
 * The VM is not protected from deletion yet: the disks of a protected VM cannot be filled, nor deleted if the import fails.
 */
async function createObjects(api: Api, { vm, claims, secrets }: ImportPlan, created: CreatedObject[]): Promise<string> {
  const at = (type: ResourceType) => collectionPath(type, api.namespace);
  await api.post(`${at(VIRTUAL_MACHINES)}?dryRun=All`, vm);
  for (const claim of claims) created.push(await createObject(api, PERSISTENT_VOLUME_CLAIMS, claim));
  const { [PROTECTION_LABEL]: _, ...labels } = vm.metadata.labels ?? {};
  const own = await createObject(api, VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, labels } });
  created.push(own);
  const ownerReferences = [vmOwnerReference({ metadata: { name: vm.metadata.name, uid: own.uid } })];
  for (const secret of secrets) {
    const owned = { ...secret, metadata: { ...secret.metadata, ownerReferences } };
    created.push(await createObject(api, SECRETS, owned));
  }
  return own.uid;
}

async function createObject(api: Api, type: ResourceType, object: KubeObject): Promise<CreatedObject> {
  const created = await api.post(collectionPath(type, api.namespace), object);
  const { name = '' } = object.metadata;
  const uid = isRecord(created) && isRecord(created['metadata']) ? created['metadata']['uid'] : undefined;
  if (typeof uid !== 'string') throw new CommandError(`the server did not return the uid of ${type.kind} ${name}`);
  return { what: `${type.kind} ${name}`, path: objectPath(type, { namespace: api.namespace, name }), uid };
}

async function uploadContent(
  api: Api,
  { vm, uploads }: ImportPlan,
  files: ImportSource['files'],
  { status, vmUid }: { readonly status: StatusOutput; readonly vmUid: string },
): Promise<void> {
  const byFile = new Map(uploads.map((upload) => [upload.file, upload]));
  if (byFile.size === 0) return;
  for await (const { name, size, content } of files(new Set(byFile.keys()))) {
    const upload = byFile.get(name);
    if (upload === undefined) continue;
    byFile.delete(name);
    const what = upload.volume === STATE_VOLUME ? 'persistent state' : `disk ${upload.volume}`;
    const reported = trackTransfer(status, { what, size }, content);
    await uploadDisk(api, { vm: vm.metadata.name, volume: upload.volume }, { size, format: upload.format }, reported);
  }
  if (byFile.size > 0) throw new CommandError(`the file ${[...byFile.keys()].join(', ')} no longer exists`);
  // Released together at the end: a VM needs all of its disks.
  const owner = { name: vm.metadata.name, uid: vmUid };
  for (const upload of uploads) await releaseUploadClaim(api, upload, owner);
}

/** Allows guests to use the claim. A claim with state is owned by the VM and deleted with it. */
async function releaseUploadClaim(
  api: Api,
  { claim, volume }: Upload,
  owner: { readonly name: string; readonly uid: string },
): Promise<void> {
  const path = objectPath(PERSISTENT_VOLUME_CLAIMS, { namespace: api.namespace, name: claim });
  const owned = volume === STATE_VOLUME ? { ownerReferences: [vmOwnerReference({ metadata: owner })] } : {};
  await api.patch(path, { metadata: { annotations: { [UPLOAD_ANNOTATION]: null }, ...owned } });
}

/** Adds the label that protects the VM from deletion, if the plan has it. */
async function protectIfPlanned(api: Api, { vm }: ImportPlan): Promise<void> {
  const { name, labels } = vm.metadata;
  if (labels?.[PROTECTION_LABEL] === undefined) return;
  const path = objectPath(VIRTUAL_MACHINES, { namespace: api.namespace, name });
  await api.patch(path, { metadata: { labels: { [PROTECTION_LABEL]: labels[PROTECTION_LABEL] } } });
}

/** Deletes created objects in reverse order: the VM before its claims. */
async function rollBack(api: Api, created: readonly CreatedObject[], cause: unknown): Promise<CommandError> {
  const [removed, left]: [string[], string[]] = [[], []];
  for (const { what, path, uid } of created.toReversed()) {
    try {
      await api.remove(path, uid);
      removed.push(what);
    } catch (error) {
      if (isApiError(error, 'NotFound')) removed.push(what);
      else left.push(`${what} (${errorMessage(error)})`);
    }
  }
  const lines = [
    errorMessage(cause),
    ...(created.length === 0 ? ['Nothing was created.'] : []),
    ...(removed.length === 0 ? [] : [`Deleted again: ${removed.join(', ')}`]),
    ...(left.length === 0 ? [] : [`Cannot delete; delete manually: ${left.join(', ')}`]),
  ];
  return new CommandError(lines.join('\n'), { cause });
}
