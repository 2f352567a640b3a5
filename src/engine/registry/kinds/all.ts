/** All built-in kinds except CustomResourceDefinition (registry/crd/). */
import { validatingAdmissionPolicyBindings } from '#engine/registry/kinds/admission/validating-admission-policy-binding.ts';
import { validatingAdmissionPolicies } from '#engine/registry/kinds/admission/validating-admission-policy.ts';
import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '#engine/registry/kinds/admission/webhook-configurations.ts';
import { apiServices } from '#engine/registry/kinds/api-service.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { controllerRevisions } from '#engine/registry/kinds/controller-revision.ts';
import { endpointSlices } from '#engine/registry/kinds/endpoint-slice.ts';
import { events } from '#engine/registry/kinds/core/event.ts';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import { limitRanges } from '#engine/registry/kinds/core/limit-range.ts';
import { leases } from '#engine/registry/kinds/lease.ts';
import { namespaces } from '#engine/registry/kinds/core/namespace.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { persistentVolumes } from '#engine/registry/kinds/volumes/persistent-volume.ts';
import { podDisruptionBudgets } from '#engine/registry/kinds/pod/pod-disruption-budget.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '#engine/registry/kinds/access/rbac.ts';
import { resourceQuotas } from '#engine/registry/kinds/core/resource-quota.ts';
import { secrets } from '#engine/registry/kinds/core/secret.ts';
import { serviceAccounts } from '#engine/registry/kinds/core/service-account.ts';
import { services } from '#engine/registry/kinds/core/service.ts';
import { storageClasses } from '#engine/registry/kinds/volumes/storage-class.ts';
import type { Resource } from '#engine/registry/resource.ts';

export const builtInResources: readonly Resource[] = [
  configMaps,
  events,
  limitRanges,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  resourceQuotas,
  secrets,
  serviceAccounts,
  services,
  mutatingWebhookConfigurations,
  validatingAdmissionPolicies,
  validatingAdmissionPolicyBindings,
  validatingWebhookConfigurations,
  apiServices,
  controllerRevisions,
  jobs,
  leases,
  endpointSlices,
  podDisruptionBudgets,
  clusterRoleBindings,
  clusterRoles,
  roleBindings,
  roles,
  priorityClasses,
  storageClasses,
];
