/** The words for what extends the API: custom resource definitions and API services. */
import { condition } from '#engine/openapi/parts/core.ts';
import type { Parts } from '#engine/openapi/parts/part.ts';

export const apiextensionsParts: Parts = {
  CustomResourceDefinition: {
    '': 'A kind that is served like the built-in ones.',
    spec: ['What kind it is.', 'CustomResourceDefinitionSpec'],
    status: ['Whether it is served; written by the system.', 'CustomResourceDefinitionStatus'],
  },
  CustomResourceDefinitionSpec: {
    '': 'What kind is defined.',
    conversion: ['How objects get from one version to another.', 'CustomResourceConversion'],
    group: 'Its group.',
    names: ['Its names.', 'CustomResourceDefinitionNames'],
    preserveUnknownFields: 'Deprecated: must be false.',
    scope: 'Cluster or Namespaced.',
    versions: ['Its versions; objects are stored in one of them.', 'CustomResourceDefinitionVersion'],
  },
  CustomResourceDefinitionNames: {
    '': 'Names of a kind.',
    categories: 'Groups of resources that it belongs to, such as all.',
    kind: 'The name in objects: one word in CamelCase.',
    listKind: 'The name in lists; by default kind and List.',
    plural: 'The name in paths.',
    shortNames: 'Abbreviations for the command line.',
    singular: 'The name for one on the command line.',
  },
  CustomResourceDefinitionVersion: {
    '': 'A version of a kind.',
    additionalPrinterColumns: ['Columns of kubectl get.', 'CustomResourceColumnDefinition'],
    deprecated: 'Whether its use is warned of.',
    deprecationWarning: 'What is said then.',
    name: 'Its name: v1, v1beta1.',
    schema: ['What objects look like.', 'CustomResourceValidation'],
    selectableFields: ['Fields by which objects can be selected.', 'SelectableField'],
    served: 'Whether it is served.',
    storage: 'Whether objects are stored in it; true for one of them.',
    subresources: ['Its subresources.', 'CustomResourceSubresources'],
  },
  CustomResourceColumnDefinition: {
    '': 'A column of kubectl get.',
    description: 'What it shows.',
    format: 'The format of the values.',
    jsonPath: 'Where in the object they are.',
    name: 'The head of the column.',
    priority: 'Columns above 0 are for wide tables only.',
    type: 'The type of the values.',
  },
  CustomResourceValidation: { '': 'What objects look like.', openAPIV3Schema: 'A structural schema.' },
  SelectableField: { '': 'A field by which objects can be selected.', jsonPath: 'Where in the object it is.' },
  CustomResourceSubresources: {
    '': 'Subresources of a kind.',
    scale: ['Makes it scalable.', 'CustomResourceSubresourceScale'],
    status: 'Separates its status from its spec.',
  },
  CustomResourceSubresourceScale: {
    '': 'Where the numbers of a scale are.',
    labelSelectorPath: 'The path of the selector as text.',
    specReplicasPath: 'The path of the wanted number.',
    statusReplicasPath: 'The path of the number that there is.',
  },
  CustomResourceConversion: {
    '': 'How objects get from one version to another.',
    strategy: 'None changes the apiVersion only, Webhook asks somebody.',
    webhook: ['Who is asked.', 'WebhookConversion'],
  },
  WebhookConversion: {
    '': 'Who converts objects.',
    clientConfig: ['Where it is.', 'WebhookClientConfig'],
    conversionReviewVersions: 'Versions of ConversionReview that it knows.',
  },
  WebhookClientConfig: {
    '': 'Where a webhook is: a service or an address.',
    caBundle: 'Certificates that its own is checked with.',
    service: ['A service of the cluster.', 'ServiceReference'],
    url: 'Its address.',
  },
  ServiceReference: {
    '': 'A service of the cluster.',
    name: 'Its name.',
    namespace: 'Its namespace.',
    path: 'The path of the requests.',
    port: 'Its port.',
  },
  CustomResourceDefinitionStatus: {
    '': 'Whether a kind is served.',
    acceptedNames: ['The names that it got.', 'CustomResourceDefinitionNames'],
    conditions: ['The state of the definition in several aspects.', 'CustomResourceDefinitionCondition'],
    storedVersions: 'Versions in which objects may be stored.',
  },
  CustomResourceDefinitionCondition: {
    '': 'One aspect of the state of a definition.',
    ...condition,
    observedGeneration: 'The generation that was looked at.',
  },
};

export const apiregistrationParts: Parts = {
  APIService: {
    '': 'A group and version that somebody else serves.',
    spec: ['Which and who.', 'APIServiceSpec'],
    status: ['Whether it answers; written by the system.', 'APIServiceStatus'],
  },
  APIServiceSpec: {
    '': 'Who serves which group and version.',
    caBundle: 'Certificates that its own is checked with.',
    group: 'The group.',
    groupPriorityMinimum: 'Groups with higher numbers come first.',
    insecureSkipTLSVerify: 'Whether its certificate is not checked.',
    service: ['The service that answers; none for this server itself.', 'ServiceReference'],
    version: 'The version.',
    versionPriority: 'Versions with higher numbers come first.',
  },
  ServiceReference: {
    '': 'A service of the cluster.',
    name: 'Its name.',
    namespace: 'Its namespace.',
    port: 'Its port.',
  },
  APIServiceStatus: {
    '': 'Whether a service answers.',
    conditions: ['The state of the service in several aspects.', 'APIServiceCondition'],
  },
  APIServiceCondition: { '': 'One aspect of the state of a service.', ...condition },
};
