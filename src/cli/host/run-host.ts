/** `selfsame host VERB ...`: calls the host API of a node on this machine. */
import { readdirSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { HOST_SOCKET, HOST_VERBS, type HostAnswer, type HostVerb, type HostVm } from '#api/host-api.ts';
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import { callHost } from '#cli/host/host-client.ts';
import { LIST_USAGE, longText, parseList, vmTableText } from '#cli/host/list-command.ts';
import { readDeviceCall, readParameters, type HostParameters } from '#cli/host/read-parameters.ts';
import type { ReadFile } from '#client/kubeconfig.ts';
import { unreachable } from '#lib/invariant.ts';
import { suggestion } from '#lib/text/nearest.ts';

export interface HostCall {
  /** The data directory of selfsame up, or of one node. */
  readonly dataDir: string;
  readonly node: string | undefined;
  /** The verb and its arguments. */
  readonly words: readonly string[];
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly readFile: ReadFile;
}

const USAGES: Readonly<Record<HostVerb, string>> = {
  list: LIST_USAGE,
  getAllVmStats: 'getAllVmStats\n            Prints the state of every VM, and a hash that changes with its devices.\n',
  create:
    'create\n            FILE.json | key=value ...\n            Starts a VM. Requires vmId, memSize and display; see docs/host-api.md for all keys.\n',
  destroy: 'destroy\n            vmId\n            Powers a VM off.\n',
  hotplugDisk: hotplugUsage('hotplugDisk', 'drive', 'Plugs a disk in.'),
  hotunplugDisk: hotplugUsage('hotunplugDisk', 'drive', 'Unplugs a disk, by its path or its deviceId.'),
  hotplugNic: hotplugUsage('hotplugNic', 'nic', 'Plugs a network interface in.'),
  hotunplugNic: hotplugUsage('hotunplugNic', 'nic', 'Unplugs a network interface, by its macAddr or its deviceId.'),
};

function hotplugUsage(verb: string, key: string, text: string): string {
  return `${verb}\n            FILE.json | vmId key=value ...\n            ${text} The file contains vmId and ${key}.\n`;
}

/** Calls the verb and prints its result. Throws CommandError; the message of an error of the host API has its code. */
export async function runHost(call: HostCall): Promise<void> {
  const [name, ...words] = call.words;
  if (name === undefined || name === 'help' || isHelp(name)) {
    call.stdout.write(Object.values(USAGES).join('\n'));
    return;
  }
  const verb = HOST_VERBS.find((known) => known === name);
  if (verb === undefined) {
    const near = suggestion(name, HOST_VERBS) || `; expected one of ${HOST_VERBS.join(', ')}`;
    throw new UsageError(`unknown verb "${name}"${near}`);
  }
  if (words.some(isHelp)) {
    call.stdout.write(USAGES[verb]);
    return;
  }
  try {
    await callVerb(verb, words, call);
  } catch (error) {
    if (error instanceof UsageError) {
      error.usage = [`Usage: selfsame host [flags] ${verb} ...`, `Try: selfsame host ${verb} --help`];
    }
    throw error;
  }
}

async function callVerb(verb: HostVerb, words: readonly string[], call: HostCall): Promise<void> {
  const callNode = (name: HostVerb, parameters: HostParameters) =>
    callHost(findNodeDir(call.dataDir, call.node), name, parameters);
  if (verb === 'list') {
    await runList(words, callNode, call);
    return;
  }
  const response = await callNode(verb, parametersOf(verb, words, call.readFile));
  checkAnswer(response);
  for (const note of response.notes ?? []) call.stderr.write(`Note: ${note}\n`);
  const reported = [...(response.vmList ?? []), ...(response.statsList ?? [])];
  const text = reported.map((item) => (typeof item === 'string' ? `${item}\n` : longText({ ...item }))).join('');
  call.stdout.write(text === '' && verb !== 'getAllVmStats' ? `${response.status.message}\n` : text);
}

type CallNode = (verb: HostVerb, parameters: HostParameters) => Promise<HostAnswer>;

async function runList(words: readonly string[], callNode: CallNode, call: HostCall): Promise<void> {
  const { view, vmList } = parseList(words);
  const response = await callNode('list', view === 'ids' ? { onlyUUID: true, vmList } : { fullStatus: true, vmList });
  checkAnswer(response);
  const found = response.vmList ?? [];
  if (view === 'ids') call.stdout.write((found as readonly string[]).map((id) => `${id}\n`).join(''));
  else if (view === 'long') call.stdout.write(found.map((vm) => longText(vm as HostVm)).join(''));
  else {
    const stats = await callNode('getAllVmStats', {});
    checkAnswer(stats);
    call.stdout.write(vmTableText(found as readonly HostVm[], stats.statsList ?? []));
  }
}

/** Throws CommandError if the node refused. */
function checkAnswer({ status }: HostAnswer): void {
  if (status.code !== 0) throw new CommandError(`${status.code} ${status.message}`);
}

function parametersOf(verb: Exclude<HostVerb, 'list'>, words: readonly string[], readFile: ReadFile): HostParameters {
  switch (verb) {
    case 'create':
      return readParameters(words, readFile);
    case 'getAllVmStats':
      if (words[0] !== undefined) throw new UsageError(`unexpected argument "${words[0]}"`);
      return {};
    case 'destroy': {
      const [vmId, surplus] = words;
      if (vmId === undefined || surplus !== undefined) throw new UsageError('expected one vmId');
      return { vmId };
    }
    case 'hotplugDisk':
    case 'hotunplugDisk':
      return readDeviceCall(words, 'drive', readFile);
    case 'hotplugNic':
    case 'hotunplugNic':
      return readDeviceCall(words, 'nic', readFile);
    default:
      return unreachable(verb);
  }
}

const isHelp = (word: string) => word === '--help' || word === '-h';

/** Returns the directory of the named node, or of the only one. `dataDir` may also be the directory of a node itself. */
function findNodeDir(dataDir: string, name: string | undefined): string {
  if (name === undefined && listEntries(dataDir).some((entry) => entry.name === HOST_SOCKET)) return dataDir;
  const nodes = listEntries(join(dataDir, 'nodes'))
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const nodeList = nodes.length === 0 ? 'no nodes' : nodes.join(', ');
  if (name !== undefined) {
    if (nodes.includes(name)) return join(dataDir, 'nodes', name);
    throw new CommandError(`Cannot find node "${name}": ${dataDir} has ${nodeList}`);
  }
  const [only, another] = nodes;
  if (only !== undefined && another === undefined) return join(dataDir, 'nodes', only);
  const hint =
    nodes.length === 0 ? '; set --data-dir to the data directory of selfsame up' : '; choose one with --node';
  throw new CommandError(`Cannot choose a node: ${dataDir} has ${nodeList}${hint}`);
}

function listEntries(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new CommandError(`Cannot read ${dir}: ${(error as Error).message}`);
  }
}
