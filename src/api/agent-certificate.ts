/**
 * How a node on a cluster gets the certificate by which our other parts, and the agents of other nodes, know it: it posts its
 * public key to our aggregated API, and who it is says the API server.
 */
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export const AGENT_CERTIFICATES = 'agentcertificates';

export interface AgentCertificate extends KubeObject {
  spec: {
    /** PEM of the SubjectPublicKeyInfo. */
    publicKey: string;
    /** IP addresses and names under which the agent is reached. */
    hosts: string[];
  };
  status?: {
    /** PEM. */
    certificate: string;
    /** PEM of all whose certificates the agent should trust. */
    authorities: string;
  };
}

export const AGENT_CERTIFICATE: ResourceType<AgentCertificate> = {
  group: SUBRESOURCES_GROUP,
  version: 'v1',
  kind: 'AgentCertificate',
  plural: AGENT_CERTIFICATES,
  namespaced: false,
};
