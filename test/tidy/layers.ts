/** The import layers of src/ (ARCHITECTURE.md): which folder may import which others, and the reason for each limit. */
import { posix } from 'node:path';
import { isTest } from '#test/tidy/rules.ts';
import type { Finding, Rule, SourceFile } from '#test/tidy/rules.ts';
import { lineAt, scanSource } from '#test/tidy/source-text.ts';

interface Layer {
  /** Folders below src/ that it may import, besides itself. `node` is that row only, `node/*` also all rows below it. */
  readonly sees: readonly string[];
  readonly why: string;
}

const ABOVE_API = 'everything above the API is an ordinary client: it works the same on a real cluster';

const VALUES = ['lib', 'kube', 'api'];
const CLIENT = [...VALUES, 'client', 'runtime'];
/** The rows of the hypervisor, of the volumes and of the networks that know no implementation. */
const PORTS = ['node/hardware', 'node/hypervisor', 'node/volumes', 'node/network'];

/** The longest matching folder applies. Each new folder of src/ needs a row. Tests obey only the outermost row. */
export const LAYERS: Readonly<Record<string, Layer>> = {
  lib: { sees: [], why: 'lib has no domain knowledge, so that everything can build on it' },
  kube: { sees: ['lib'], why: 'kube is Kubernetes as values; it serves both sides of the wire and the browser' },
  cel: {
    sees: ['lib', 'kube'],
    why: "CEL is a language with Kubernetes' library; which expressions are evaluated, and when, is decided elsewhere",
  },
  engine: {
    sees: ['lib', 'kube', 'cel', 'engine/*'],
    why: 'the engine is a server: only engine/controllers use it as its clients do, and it knows nothing of VMs',
  },
  'engine/request': {
    sees: ['lib', 'kube'],
    why: 'requests, responses and limits are plain values: everything else in the engine works with them',
  },
  'engine/store': { sees: ['lib', 'kube'], why: 'the store holds bytes under revisions and knows no kinds' },
  'engine/encoding': {
    sees: ['lib', 'kube', ...engine('request')],
    why: 'encoding turns values into bytes and back, the same way for every kind',
  },
  'engine/expressions': {
    sees: ['lib', 'kube', 'cel'],
    why: 'expressions are compiled from text alone: the registry validates them, admission evaluates them',
  },
  'engine/registry': {
    sees: ['lib', 'kube', 'cel', ...engine('store', 'encoding', 'expressions')],
    why: 'kinds are values; who calls them, and how their versions are converted, is decided above',
  },
  'engine/protobuf': {
    sees: ['lib', 'kube', ...engine('encoding', 'registry')],
    why: 'protobuf bodies become the same values as JSON bodies, by the types of the built-in kinds alone',
  },
  'engine/body': {
    sees: ['lib', 'kube', ...engine('request', 'encoding', 'protobuf')],
    why: 'a body is decoded before anything is decided about it',
  },
  'engine/managed-fields': {
    sees: ['lib', 'kube', ...engine('encoding', 'registry')],
    why: 'field ownership is a function of objects and schemas; handlers decide when to compute it',
  },
  'engine/auth': {
    sees: ['lib', 'kube', ...engine('request', 'store', 'encoding')],
    why: 'who may do what is decided before a request reaches its verb, so it must not depend on verbs',
  },
  'engine/remote': {
    sees: ['lib', 'kube', ...engine('request', 'store', 'encoding', 'registry', 'auth')],
    why: 'remote reaches servers and nodes; what they are asked, and what follows from it, is decided by its callers',
  },
  'engine/conversion': {
    sees: ['lib', 'kube', ...engine('store', 'encoding', 'registry', 'remote')],
    why: 'conversion serves admission and handlers, and must work without either',
  },
  'engine/expiry': {
    sees: ['lib', 'kube', 'engine/store', 'engine/encoding'],
    why: 'objects expire in the store itself, whatever their kind, admission and handlers say',
  },
  'engine/custom-kinds': {
    sees: ['lib', 'kube', ...engine('store', 'encoding', 'registry', 'remote', 'conversion')],
    why: 'it gives the registry the kinds of definitions with their conversion, so that the registry needs to know neither',
  },
  'engine/admission': {
    sees: [
      'lib',
      'kube',
      'cel',
      ...engine('request', 'store', 'encoding', 'expressions', 'registry', 'auth', 'remote'),
    ],
    why: 'admission judges what a handler is about to write; it must not know which verb that is',
  },
  'engine/tables': { sees: ['lib', 'kube', ...engine('request', 'registry')], why: 'a table is a function of objects' },
  'engine/handlers': {
    sees: [
      'lib',
      'kube',
      'cel',
      ...engine('request', 'store', 'encoding', 'body', 'registry', 'managed-fields', 'auth'),
      ...engine('admission', 'tables'),
    ],
    why: 'a handler serves one verb for every kind, to a caller that it does not know',
  },
  'engine/subresources': {
    sees: ['lib', 'kube', ...engine('request', 'body', 'registry', 'auth', 'remote', 'admission', 'handlers')],
    why: 'subresources of single kinds build on the verbs, never the other way around',
  },
  'engine/discovery': {
    sees: ['lib', 'kube', ...engine('request', 'registry')],
    why: 'discovery is a function of the kinds and of the versions that aggregated servers report',
  },
  'engine/openapi': {
    sees: ['lib', 'kube', ...engine('request', 'registry', 'discovery')],
    why: 'OpenAPI is a function of the kinds and of the documents that aggregated servers report',
  },
  'engine/aggregation': {
    sees: ['lib', 'kube', ...engine('request', 'store', 'encoding', 'auth', 'remote', 'discovery', 'openapi')],
    why: 'aggregated APIs bypass our kinds and verbs',
  },
  'engine/audit': {
    sees: ['lib', 'kube', ...engine('request', 'auth')],
    why: 'an audit record is made of what the request itself knows, whoever serves it',
  },
  'engine/http': {
    sees: ['lib', 'kube', ...engine('request', 'auth')],
    why: 'the listener serves an ApiHandler, whatever is behind it',
  },
  'engine/dispatch': {
    sees: [
      'lib',
      'kube',
      ...engine('request', 'store', 'encoding', 'registry', 'auth', 'admission', 'tables', 'handlers'),
      ...engine('discovery', 'openapi', 'aggregation', 'audit'),
    ],
    why: 'dispatch is the whole API as one function, without a network and without controllers',
  },
  'engine/controllers': {
    sees: [
      'lib',
      'kube',
      'cel',
      'client',
      'runtime',
      ...engine('request', 'registry', 'auth', 'admission', 'discovery', 'aggregation'),
    ],
    why: 'controllers reach objects through the API like every client, and the engine could serve any operator: they know nothing of VMs',
  },
  client: { sees: ['lib', 'kube'], why: 'a client knows the API, not the server behind it' },
  runtime: { sees: ['lib', 'kube', 'client'], why: 'the runtime runs any controller, on any engine' },
  api: { sees: ['lib', 'kube'], why: 'our kinds are values that every part reads' },
  admission: {
    sees: ['lib', 'kube', 'api'],
    why: 'admission is a function of the review; the server passes lookups to it',
  },
  controllers: { sees: CLIENT, why: ABOVE_API },
  'controllers/shared': { sees: CLIENT, why: 'controllers build on this folder, so it must not know any of them' },
  ...controllerRows(
    ...[
      'device-map',
      'migration',
      'network-address',
      'protection',
      'restore',
      'snapshot',
      'storage',
      'vm',
      'vmi',
      'volume-snapshot',
    ],
  ),
  node: { sees: CLIENT, why: ABOVE_API },
  'node/hardware': {
    sees: VALUES,
    why: 'the description of a guest depends neither on the code that builds it nor on a hypervisor',
  },
  'node/definition': {
    sees: [...VALUES, 'node/hardware'],
    why: 'an instance becomes a definition by pure functions, for any hypervisor',
  },
  'node/sandbox': { sees: ['lib'], why: 'a sandbox is the same for a guest and for a program that reads an image' },
  'node/hypervisor': {
    sees: [...VALUES, 'node/hardware'],
    why: 'a hypervisor runs definitions; it does not know where they come from, and the port knows no implementation',
  },
  'node/hypervisor/qemu': {
    sees: [...VALUES, 'node/hardware', 'node/sandbox', 'node/hypervisor'],
    why: 'it runs definitions with QEMU, for any agent',
  },
  'node/hypervisor/fake': {
    sees: [...VALUES, 'node/hardware', 'node/hypervisor'],
    why: 'the fake must not use the code that it replaces',
  },
  'node/volumes': { sees: [...VALUES, 'node/hardware'], why: 'the port of volumes knows no implementation' },
  'node/volumes/local': {
    sees: [...VALUES, 'node/hardware', 'node/sandbox', 'node/volumes'],
    why: 'volumes are files of this machine; the agent looks up the objects and decides when',
  },
  'node/network': {
    sees: [...VALUES, 'node/hardware', 'node/hypervisor'],
    why: 'the port of networks, and a hypervisor that uses it, know no implementation',
  },
  'node/network/linux': {
    sees: [...VALUES, 'node/hardware', 'node/network', 'node/network/linux/cni'],
    why: "it connects guests; the host's side of their network is behind a port",
  },
  'node/network/linux/cni': {
    sees: ['lib', 'kube'],
    why: 'it runs any plugin chain for any container, as the specification of CNI demands',
  },
  'node/network/linux/host': {
    sees: ['lib', 'node/network/linux'],
    why: 'bridges, rules and DNS of the host know ports with addresses, and nothing of guests and pods',
  },
  'node/network/fake': {
    sees: [...VALUES, 'node/hardware', 'node/network'],
    why: 'the fake must not use the code that it replaces',
  },
  'node/guest-agent': {
    sees: [...VALUES, 'runtime', 'node/hypervisor'],
    why: 'it only reads from guest agents; node/domains decides what to report',
  },
  'node/guest-ports': {
    sees: ['api', 'lib', 'node/hardware', 'node/hypervisor', 'node/network', 'node/guest-agent'],
    why: 'it connects to ports of guests, for any protocol',
  },
  'node/probes': {
    sees: [...VALUES, 'runtime', 'node/hypervisor'],
    why: 'a probe reports health; node/domains decides what follows from it',
  },
  'node/pods': { sees: CLIENT, why: 'pods are objects and programs; guests are the concern of node/domains' },
  'node/endpoint': {
    sees: [...VALUES, 'node/hypervisor', 'node/volumes'],
    why: 'the endpoint serves interfaces; the agent passes their implementations to it',
  },
  'node/guests': {
    sees: [...VALUES, 'client', ...PORTS, 'node/definition', 'node/pods'],
    why: 'every part that acts on guests builds on this folder, so it must not know any of them',
  },
  'node/registration': {
    sees: [...CLIENT, 'node/hardware', 'node/definition'],
    why: 'the Node describes the machine, not its guests',
  },
  'node/services': {
    sees: CLIENT,
    why: 'it routes Services to addresses of any pods; the agent passes the network to it',
  },
  'node/storage': {
    sees: [...CLIENT, ...PORTS, 'node/endpoint', 'node/guests', 'node/pods'],
    why: 'volumes and snapshots have their own loops, which do not depend on the loop of guests',
  },
  'node/host-api': {
    sees: [
      ...VALUES,
      ...PORTS,
      'node/volumes/local',
      'node/definition',
      'node/guest-agent',
      'node/endpoint',
      'node/guests',
    ],
    why: 'the host API runs guests without any API server, so it uses no client',
  },
  'node/migration': {
    sees: [...CLIENT, ...PORTS, 'node/definition', 'node/endpoint', 'node/guests'],
    why: 'sessions carry out a migration; node/domains decides when it starts and ends',
  },
  'node/domains': {
    sees: [
      ...CLIENT,
      ...PORTS,
      'node/definition',
      'node/guest-agent',
      'node/guests',
      'node/migration',
      'node/pods',
      'node/probes',
    ],
    why: 'it decides about the guests of pods, and knows nothing of the endpoint, the host API and the storage loops',
  },
  'node/agent': {
    sees: [
      ...CLIENT,
      ...PORTS,
      'node/domains',
      'node/endpoint',
      'node/guest-agent',
      'node/guest-ports',
      'node/guests',
      'node/host-api',
      'node/migration',
      'node/pods',
      'node/probes',
      'node/registration',
      'node/services',
      'node/storage',
    ],
    why: 'it combines the parts of the agent with any hypervisor and any volumes, and decides nothing itself',
  },
  transition: { sees: ['lib', 'kube', 'client', 'runtime', 'api'], why: ABOVE_API },
  doctor: { sees: ['lib', 'formats'], why: 'it examines machines on which no other part of Selfsame works yet' },
  formats: { sees: ['lib', 'kube', 'api'], why: 'codecs are pure' },
  subresources: { sees: ['lib', 'kube', 'client', 'runtime', 'api'], why: ABOVE_API },
  operator: { sees: ['lib', 'kube', 'client', 'runtime', 'api'], why: ABOVE_API },
  plane: {
    sees: [...CLIENT, 'admission', 'controllers/*', 'node/*', 'subresources', 'operator'],
    why: 'the plane combines the parts, on any API server; the only decision it makes is which part runs where, and as whom',
  },
  'plane/components': {
    sees: [...CLIENT, 'admission', 'controllers/*', 'subresources', 'operator'],
    why: 'controllers and webhook run on any API server, and never in the process of a node',
  },
  'plane/node': {
    sees: [...CLIENT, 'node/*', 'subresources'],
    why: 'the process of a node works on any API server and runs no other component',
  },
  'plane/cluster': {
    sees: [...CLIENT, 'subresources', 'operator', 'plane/components', 'plane/node'],
    why: 'it runs the components on an existing cluster, without the engine',
  },
  'plane/embedded': {
    sees: [...CLIENT, 'engine/*', 'subresources', 'operator', 'formats', 'plane/components', 'plane/node'],
    why: 'only this folder combines our parts with the engine; every other one works with any API server',
  },
  cli: { sees: ['lib', 'kube', 'client', 'api', 'formats'], why: ABOVE_API },
};

/** Returns the rows of controllers, none of which imports another one. */
function controllerRows(...names: readonly string[]): Record<string, Layer> {
  const why =
    'controllers communicate only through objects (invariant 19); what several of them compute is in controllers/shared';
  return Object.fromEntries(
    names.map((name) => [`controllers/${name}`, { sees: [...CLIENT, 'controllers/shared'], why }]),
  );
}

/** The entry points, which combine everything. Only their own files import them. */
const isProgram = (path: string) => path === 'main.ts' || path.startsWith('program/');

export const layers: Rule = (file) => {
  if (!file.path.startsWith('src/') || !file.path.endsWith('.ts')) return [];
  const path = file.path.slice('src/'.length);
  if (isProgram(path)) return [];
  const own = layerOf(path);
  if (own === undefined || (own === 'engine' && path.split('/').length > 2)) {
    return [{ path: file.path, line: 1, problem: 'stands in a folder without a row in test/tidy/layers.ts' }];
  }
  return importsOf(file).flatMap(({ specifier, line }) => {
    const problem = importProblem(specifier, path, own);
    return problem === undefined ? [] : [{ path: file.path, line, problem } satisfies Finding];
  });
};

function importProblem(specifier: string, from: string, own: string): string | undefined {
  if (own === 'kube' && specifier.startsWith('node:') && !isTest(from)) {
    return `imports ${specifier}: kube must run in a browser`;
  }
  const target = targetOf(specifier, from);
  if (target === undefined) return undefined;
  if (target.startsWith('../')) {
    return isTest(from) ? undefined : `imports ${specifier}: the program must not depend on what is outside of src/`;
  }
  if (isProgram(target)) return `imports ${specifier}: nothing sees main.ts and program/; take values as arguments`;
  if (isTest(target) && !isTest(from)) return `imports ${specifier}: only tests may use what is made for tests`;
  const layer = layerOf(target);
  if (layer !== undefined && isVisible(layer, own, isTest(from))) return undefined;
  return `imports ${specifier}: ${own} may see only ${LAYERS[own]?.sees.join(', ') || 'itself'}, because ${LAYERS[own]?.why}`;
}

/** Reports whether one row may import the other. A test may combine a folder with its neighbours, and with their fakes. */
function isVisible(layer: string, own: string, fromTest: boolean): boolean {
  const outermost = own.split('/')[0] ?? own;
  if (layer === own || (fromTest && layer.split('/')[0] === outermost)) return true;
  const rows = fromTest ? [own, outermost] : [own];
  return rows.some((row) => LAYERS[row]?.sees.some((seen) => layer === seen || isBelow(layer, seen)));
}

/** Reports whether `seen` is a folder with `/*` and the row is that folder or below it. */
export function isBelow(layer: string, seen: string): boolean {
  return seen.endsWith('/*') && (layer === seen.slice(0, -2) || layer.startsWith(seen.slice(0, -1)));
}

/** Returns the imported file as a path below src/, or undefined for a package. */
export function targetOf(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('.')) return posix.normalize(posix.join(posix.dirname(from), specifier));
  if (specifier.startsWith('#test/')) return `../test/${specifier.slice('#test/'.length)}`;
  return specifier.startsWith('#') ? specifier.slice(1) : undefined;
}

function layerOf(path: string): string | undefined {
  return Object.keys(LAYERS)
    .filter((folder) => path.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length)[0];
}

/** Returns static imports, dynamic imports and re-exports. */
export function importsOf({ text }: SourceFile): { specifier: string; line: number }[] {
  const { code } = scanSource(text);
  return [...code.matchAll(/(?:(?<!\.)\bfrom|\bimport)\s*\(?\s*(['"])(\s*)\1/g)].map((match) => {
    const start = match.index + match[0].length - 1 - (match[2]?.length ?? 0);
    return { specifier: text.slice(start, start + (match[2]?.length ?? 0)), line: lineAt(text, match.index) };
  });
}

/** Returns the rows of these folders of src/engine/. */
function engine(...folders: readonly string[]): string[] {
  return folders.map((folder) => `engine/${folder}`);
}
