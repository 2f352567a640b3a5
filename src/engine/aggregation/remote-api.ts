/** Reads an APIService that refers to a service, once from its stored bytes. Pure. */
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { ServicePort } from '#engine/remote/service-address.ts';
import { isTrue } from '#kube/conditions.ts';
import { isRecord } from '#kube/meta.ts';

export const API_SERVICE_COLLECTION = 'apiservices.apiregistration.k8s.io';

const DEFAULT_PORT = 443;

export interface RemoteApi {
  /** Name of the APIService: `v1.metrics.example.com`. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  readonly service: ServicePort;
  /** PEM; '' = the system's root certificates. */
  readonly ca: string;
  readonly insecure: boolean;
  /** True if the server is known not to respond; an unchecked server counts as available. */
  readonly unavailable: boolean;
}

interface Spec {
  readonly group?: string;
  readonly version?: string;
  readonly groupPriorityMinimum?: number;
  readonly versionPriority?: number;
  readonly service?: { readonly namespace?: string; readonly name?: string; readonly port?: number };
  readonly caBundle?: string;
  readonly insecureSkipTLSVerify?: boolean;
}

/**
 * Returns undefined if the API is local. All of our own groups are, whatever is registered: without roles, leases or
 * registrations nothing could be repaired.
 */
export function readRemoteApi(bytes: Buffer, ownGroups: ReadonlySet<string>): RemoteApi | undefined {
  const { metadata, spec, status } = decodeStored(bytes);
  const { group = '', version = '', service, caBundle = '', ...rest } = (spec ?? {}) as Spec;
  if (service === undefined || ownGroups.has(group)) return undefined;
  const { namespace = '', name = '', port = DEFAULT_PORT } = service;
  const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  return {
    name: metadata.name ?? '',
    group,
    version,
    groupPriority: rest.groupPriorityMinimum ?? 0,
    versionPriority: rest.versionPriority ?? 0,
    service: { namespace, name, port },
    ca: Buffer.from(caBundle, 'base64').toString('utf8'),
    insecure: rest.insecureSkipTLSVerify === true,
    unavailable: conditions.length > 0 && !isTrue(conditions, 'Available'),
  };
}

/** APIServices with equal keys are reached in the same way. */
export function routeKey({ service, ca, insecure }: RemoteApi): string {
  return JSON.stringify([service.namespace, service.name, service.port, insecure, ca]);
}

/** Returns `/apis/<group>/<version>`. */
export function discoveryPath({ group, version }: Pick<RemoteApi, 'group' | 'version'>): string {
  return `/apis/${group}/${version}`;
}
