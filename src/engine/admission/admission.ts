/** The admission chain: what may still refuse (later: change) a request that is allowed and well formed. */
import type { UserInfo } from '#engine/request.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly resource: Resource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Absent for DELETE. */
  readonly object: KubeObject | undefined;
  /** Absent for CREATE. */
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
}

/** Throws an ApiError to refuse. */
export type AdmissionStep = (request: AdmissionRequest) => void;

export function admissionChain(steps: readonly AdmissionStep[]): AdmissionStep {
  return (request) => {
    for (const step of steps) step(request);
  };
}
