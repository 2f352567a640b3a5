/** Documentation of the kinds that extend the API: custom resource definitions and API services. */
import { conditionDoc } from '#engine/openapi/type-docs/core.ts';
import type { PackageDocs } from '#engine/openapi/type-docs/type-doc.ts';

export const apiextensionsDocs: PackageDocs = {
  CustomResourceDefinition: {
    '': 'A kind of resource to be served by the API server.',
    spec: ['Names, versions and schemas of the custom resource.', 'CustomResourceDefinitionSpec'],
    status: ['Current status of the definition. Populated by the system. Read-only.', 'CustomResourceDefinitionStatus'],
  },
  CustomResourceDefinitionSpec: {
    '': 'The names, versions and schemas of a custom resource.',
    conversion: ['How objects are converted between versions.', 'CustomResourceConversion'],
    group: 'API group of the custom resource.',
    names: ['Names of the resource and its kind.', 'CustomResourceDefinitionNames'],
    preserveUnknownFields: 'Deprecated: must be false.',
    scope: 'Scope of the custom resource: Cluster or Namespaced.',
    versions: [
      'Versions of the custom resource, one of which is the storage version.',
      'CustomResourceDefinitionVersion',
    ],
  },
  CustomResourceDefinitionNames: {
    '': 'The names of a custom resource.',
    categories: 'Categories that the resource belongs to, such as all.',
    kind: 'Kind of the objects, in CamelCase.',
    listKind: 'Kind of lists of the objects. Defaults to <kind>List.',
    plural: 'Plural name of the resource, as in URL paths.',
    shortNames: 'Short names for use on the command line.',
    singular: 'Singular name of the resource. Defaults to the lower case kind.',
  },
  CustomResourceDefinitionVersion: {
    '': 'A version of a custom resource.',
    additionalPrinterColumns: ['Additional columns of tables.', 'CustomResourceColumnDefinition'],
    deprecated: 'Whether the version is deprecated. Requests to it then get a warning.',
    deprecationWarning: 'Text of the warning. Overrides the default text.',
    name: 'Name of the version, such as v1 or v1beta1.',
    schema: ['Schema that validates, prunes and defaults objects.', 'CustomResourceValidation'],
    selectableFields: ['Fields that can be used in field selectors.', 'SelectableField'],
    served: 'Whether the version is served.',
    storage: 'Whether objects are stored in this version. Must be true for exactly one version.',
    subresources: ['Subresources of the version.', 'CustomResourceSubresources'],
  },
  CustomResourceColumnDefinition: {
    '': 'A column of a table.',
    description: 'Description of the column.',
    format: 'OpenAPI format of the values.',
    jsonPath: 'JSON path of the values in each object.',
    name: 'Name of the column.',
    priority: 'Priority of the column. Columns above 0 are shown in wide tables only.',
    type: 'OpenAPI type of the values.',
  },
  CustomResourceValidation: {
    '': 'The schema of a custom resource.',
    openAPIV3Schema: 'Structural OpenAPI v3 schema.',
  },
  SelectableField: {
    '': 'A field that can be used in field selectors.',
    jsonPath: 'JSON path of the field in each object.',
  },
  CustomResourceSubresources: {
    '': 'The subresources of a custom resource.',
    scale: ['Enables the scale subresource.', 'CustomResourceSubresourceScale'],
    status: 'Enables the status subresource.',
  },
  CustomResourceSubresourceScale: {
    '': 'The fields that the scale subresource reads and writes.',
    labelSelectorPath: 'JSON path of the label selector in the status, as a string.',
    specReplicasPath: 'JSON path of the desired number of replicas.',
    statusReplicasPath: 'JSON path of the observed number of replicas.',
  },
  CustomResourceConversion: {
    '': 'How objects are converted between versions.',
    strategy: 'Conversion strategy: None changes only the apiVersion, Webhook calls a webhook.',
    webhook: ['Webhook to call. Requires strategy Webhook.', 'WebhookConversion'],
  },
  WebhookConversion: {
    '': 'A webhook that converts objects.',
    clientConfig: ['How to call the webhook.', 'WebhookClientConfig'],
    conversionReviewVersions: 'Versions of ConversionReview that the webhook accepts, in order of preference.',
  },
  WebhookClientConfig: {
    '': 'How to connect to a webhook: a service of the cluster or a URL.',
    caBundle: "PEM encoded CA bundle that verifies the webhook's server certificate.",
    service: ['Service that serves the webhook.', 'ServiceReference'],
    url: 'URL of the webhook.',
  },
  ServiceReference: {
    '': 'A reference to a service.',
    name: 'Name of the service.',
    namespace: 'Namespace of the service.',
    path: 'URL path of requests to the service.',
    port: 'Port of the service. Defaults to 443.',
  },
  CustomResourceDefinitionStatus: {
    '': 'The current status of a CustomResourceDefinition.',
    acceptedNames: ['Names in use. They may differ from those in the spec.', 'CustomResourceDefinitionNames'],
    conditions: ['Latest observations of the state of the definition.', 'CustomResourceDefinitionCondition'],
    storedVersions: 'Versions that objects have ever been stored in.',
  },
  CustomResourceDefinitionCondition: {
    '': 'A condition of a CustomResourceDefinition.',
    ...conditionDoc,
    observedGeneration: 'Generation of the definition that the condition describes.',
  },
};

export const apiregistrationDocs: PackageDocs = {
  APIService: {
    '': 'A server for one API group and version.',
    spec: ['Group, version and server.', 'APIServiceSpec'],
    status: ['Current availability of the server. Populated by the system. Read-only.', 'APIServiceStatus'],
  },
  APIServiceSpec: {
    '': 'The group and version that a server serves, and how to reach it.',
    caBundle: "PEM encoded CA bundle that verifies the server's certificate.",
    group: 'Name of the API group.',
    groupPriorityMinimum: 'Minimum priority of the group. Groups with higher numbers come first.',
    insecureSkipTLSVerify: 'Whether verification of the server certificate is disabled.',
    service: ['Service that serves the API. Unset means that this server serves it.', 'ServiceReference'],
    version: 'Name of the API version.',
    versionPriority: 'Priority of the version in its group. Versions with higher numbers come first.',
  },
  ServiceReference: {
    '': 'A reference to a service.',
    name: 'Name of the service.',
    namespace: 'Namespace of the service.',
    port: 'Port of the service. Defaults to 443.',
  },
  APIServiceStatus: {
    '': 'The availability of an API server.',
    conditions: ['Current service state of the APIService.', 'APIServiceCondition'],
  },
  APIServiceCondition: { '': 'A condition of an APIService.', ...conditionDoc },
};
