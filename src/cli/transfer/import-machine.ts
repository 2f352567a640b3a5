/** Shared by all imports: the flags, and the creation of objects from a description. */
import { STORAGE_PROFILES, stateModesOf, type StorageProfile } from '#api/storage/storage-profile.ts';
import { isApiError } from '#kube/api-error.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { executeImport } from '#cli/transfer/execute-import.ts';
import type { Terminal } from '#cli/command.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { listFlag, switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';
import { parsePairs, planImport, type ImportOptions } from '#cli/transfer/import-plan.ts';
import { importError, type ImportSource } from '#cli/transfer/import-source.ts';
import { toYaml } from '#cli/output-format.ts';
import { listNodeMetadata } from '#cli/machine-types/read-fleet.ts';
import { offeredTypes } from '#cli/machine-types/supported-types.ts';
import { findObject, readConfiguration } from '#cli/connection/vm-objects.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { alternativesText } from '#cli/connection/missing-object.ts';
import { collectionPath } from '#client/resource-path.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

export const importFlags = {
  name: textFlag({ name: 'name', help: 'The name of the virtual machine; by default the name in the file.' }, 'string'),
  storageClass: textFlag(
    { name: 'storage-class', help: 'The storage class of the created claims; the default class by default.' },
    'string',
  ),
  claim: listFlag(
    { name: 'claim', help: 'disk=claim: an existing claim with the content of this disk; can be repeated.' },
    'disk=claim',
  ),
  secret: listFlag(
    { name: 'secret', help: 'disk=secret: an existing Secret with the cloud-init data of this disk; can be repeated.' },
    'disk=secret',
  ),
  network: listFlag(
    {
      name: 'network',
      help: 'network=name: the NetworkAttachmentDefinition, or pod, for a network in the file; can be repeated.',
    },
    'network=name',
  ),
  newIdentity: switchFlag({
    name: 'new-identity',
    help: 'Create a different machine with the same hardware: with its own uuid, serial and MAC addresses.',
  }),
  keepState: switchFlag({
    name: 'keep-state',
    help:
      'With --new-identity: also import the persistent state. It is omitted by default, because the keys in a TPM ' +
      'identify the machine, and both machines could unseal the same secrets.',
  }),
  dryRun: switchFlag({ name: 'dry-run', help: 'Print the objects as YAML without creating them.' }),
};

type Flags = FlagValues<typeof importFlags>;

/** Throws UsageError. */
export function importOptions(flags: Flags, namespace: string): ImportOptions {
  const pairs = (flag: 'claim' | 'network' | 'secret') => {
    const parsed = parsePairs(flag, flags[flag]);
    if (typeof parsed === 'string') throw new UsageError(parsed);
    return parsed;
  };
  const { name, storageClass, newIdentity, keepState } = flags;
  const mapped = { claims: pairs('claim'), networks: pairs('network'), secrets: pairs('secret') };
  return { namespace, name, storageClass, newIdentity, keepState, ...mapped };
}

interface ImportParts {
  readonly api: ApiConnection;
  readonly status: StatusOutput;
  readonly terminal: Pick<Terminal, 'stdout'>;
}

/** Imports a machine. `files` is absent if the format has no disk content. */
export async function importMachine(
  path: string,
  machine: MachineDescription,
  { options, dryRun, files }: { options: ImportOptions; dryRun: boolean; files?: ImportSource['files'] },
  { api, status, terminal }: ImportParts,
): Promise<void> {
  const { report } = status;
  const known = { ...(await addStateStorage(api, machine, { options, report })), ...(await findOffered(api, report)) };
  const plan = planImport(machine, known, { canUpload: files !== undefined });
  if ('errors' in plan) throw importError(path, plan.errors);
  for (const note of plan.notes) report(`Note: ${note}`);
  if (dryRun) {
    terminal.stdout.write([...plan.claims, plan.vm, ...plan.secrets].map((object) => toYaml(object)).join('---\n'));
    return;
  }
  const missing = await findMissingClaims(api, options);
  if (missing.length > 0) throw importError(path, missing);
  await executeImport(api, plan, files ?? noFiles, status);
  terminal.stdout.write(`VM ${plan.vm.metadata.name} was imported from ${path}\n`);
}

/**
 * Adds the class and the modes of the state claim, as the controller of instances chooses them. Uses the defaults if the
 * user may not read the settings or the storage profile.
 */
async function addStateStorage(
  api: ApiConnection,
  { state }: MachineDescription,
  { options, report }: { options: ImportOptions; report: (line: string) => void },
): Promise<ImportOptions> {
  if (state?.file === undefined) return options;
  const { storageClass } = options;
  const stateStorageClass = storageClass ?? (await readConfiguration(api, report)).vmStateStorageClass;
  if (!stateStorageClass) return options;
  return { ...options, stateStorageClass, stateModes: stateModesOf(await findProfile(api, stateStorageClass)) };
}

/** Resolves to the machine types of all nodes, or to nothing if the user may not read nodes. */
async function findOffered(
  api: ApiConnection,
  report: (line: string) => void,
): Promise<Pick<ImportOptions, 'offeredTypes'>> {
  try {
    const nodes = await listNodeMetadata(api, report);
    return { offeredTypes: new Set(offeredTypes(nodes).map(({ name }) => name)) };
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return {};
    throw error;
  }
}

async function findProfile(api: ApiConnection, name: string): Promise<StorageProfile | undefined> {
  try {
    return await findObject(api, STORAGE_PROFILES, name);
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return undefined;
    throw error;
  }
}

async function findMissingClaims(api: ApiConnection, { claims }: ImportOptions): Promise<string[]> {
  const missing: string[] = [];
  for (const claim of new Set(claims.values())) {
    if ((await findObject(api, PERSISTENT_VOLUME_CLAIMS, claim)) === undefined) {
      const collection = collectionPath(PERSISTENT_VOLUME_CLAIMS, api.namespace);
      const object = { collection, plural: PERSISTENT_VOLUME_CLAIMS.plural, namespace: api.namespace, name: claim };
      missing.push(`persistentvolumeclaims "${claim}" not found${await alternativesText(api, object)}`);
    }
  }
  return missing;
}

async function* noFiles(): AsyncGenerator<never> {}
