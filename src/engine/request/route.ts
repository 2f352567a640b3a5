/** Parses method, path and query like Kubernetes' RequestInfo. Pure. */

export interface ResourceRoute {
  readonly type: 'resource';
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  /** True if more segments follow that only the subresource interprets: `portforward/22/tcp`. */
  readonly hasMoreSegments: boolean;
}

interface PathRoute {
  readonly type: 'path';
  readonly path: string;
}

export type ApiRoute = ResourceRoute | PathRoute;

export function parseApiRoute(path: string): ApiRoute {
  const parts = path.split('/');
  if (parts[parts.length - 1] === '') parts.pop();
  // An empty name (for example from a script) must not turn one namespace into all of them.
  if (parts.includes('', 1)) return { type: 'path', path };
  // ['', 'api', 'v1', ...] or ['', 'apis', group, version, ...]
  if (parts[1] === 'api' && parts.length > 3) return resourceRoute('', parts[2]!, parts, 3);
  if (parts[1] === 'apis' && parts.length > 4) return resourceRoute(parts[2]!, parts[3]!, parts, 4);
  return { type: 'path', path };
}

/** The subresources of a namespace, which follow its name in place of a resource. */
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
  return { type: 'resource', group, version, plural, namespace, name, subresource, hasMoreSegments: rest > 3 };
}

function decode(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Parses a flag like Kubernetes: present means true, unless it is false. */
export function isTrueParameter(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** Returns the RBAC verb of a request, or undefined if the method is not supported. */
export function verbOf(method: string, route: ResourceRoute, query: URLSearchParams): string | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (query.size > 0 && isTrueParameter(query.get('watch'))) return 'watch';
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
