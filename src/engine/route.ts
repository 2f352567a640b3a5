/** Maps method and path to what is asked for, as Kubernetes' RequestInfo does. Pure. */

export interface ResourceRoute {
  readonly type: 'resource';
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  /** More follows, which only whoever serves the subresource understands: `portforward/22/tcp`. */
  readonly deeper: boolean;
}

export interface PathRoute {
  readonly type: 'path';
  readonly path: string;
}

export type Route = ResourceRoute | PathRoute;

export function parseRoute(path: string): Route {
  const parts = path.split('/');
  if (parts[parts.length - 1] === '') parts.pop();
  // A name that a script left empty must not turn one namespace into all of them.
  if (parts.includes('', 1)) return { type: 'path', path };
  // ['', 'api', 'v1', ...] or ['', 'apis', group, version, ...]
  if (parts[1] === 'api' && parts.length > 3) return resourceRoute('', parts[2]!, parts, 3);
  if (parts[1] === 'apis' && parts.length > 4) return resourceRoute(parts[2]!, parts[3]!, parts, 4);
  return { type: 'path', path };
}

/** What may follow a namespace's own name instead of a resource in it. */
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

function resourceRoute(group: string, version: string, parts: string[], at: number): ResourceRoute {
  let namespace = '';
  const first = decode(parts[at]!);
  if (first === 'namespaces' && parts.length > at + 2 && !NAMESPACE_SUBRESOURCES.has(parts[at + 2]!)) {
    namespace = decode(parts[at + 1]!);
    at += 2;
  }
  const rest = parts.length - at;
  const plural = decode(parts[at]!);
  const name = rest > 1 ? decode(parts[at + 1]!) : '';
  const subresource = rest > 2 ? decode(parts[at + 2]!) : '';
  return { type: 'resource', group, version, plural, namespace, name, subresource, deeper: rest > 3 };
}

function decode(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The RBAC verb of a request for a resource; undefined = no such method. */
export function verbOf(method: string, route: ResourceRoute, watching: boolean): string | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (watching) return 'watch';
      return route.name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return route.name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}
