/** What the payments service documents of each field of its events, written by hand from its tables: path and kind. */
export type Kind =
  | 'string'
  | 'enumeration'
  | 'e-mail address'
  | 'number'
  | 'boolean'
  | 'object'
  | 'array'
  | 'not specified'
export type Fields = Readonly<Record<string, Kind>>

/** Table 2.1. */
export const envelopeFields: Fields = { id: 'string', type: 'enumeration', date: 'string', payload: 'object' }

/** Table 2.2. */
const mandateSetupStarted: Fields = {
  referenceId: 'string',
  reference: 'string',
  userNotificationEmail: 'e-mail address',
  signature: 'object',
  'signature.ip': 'string',
  'signature.signedAt': 'not specified',
  'signature.token': 'string',
  creditor: 'object',
  'creditor.id': 'string',
  'creditor.name': 'string',
  'creditor.address': 'object',
  'creditor.address.street': 'string',
  'creditor.address.city': 'string',
  'creditor.address.postalCode': 'string',
  'creditor.address.country': 'string',
}

/** Table 2.3, the rows from `shopLogo` to `manuallyApproved` that each app repeats, and `websiteUrl`. */
const repeatedInApps: Fields = {
  shopLogo: 'string',
  quoteCallbackUrl: 'string',
  completeCallbackUrl: 'string',
  websiteUrl: 'string',
  successCallbackUrl: 'string',
  errorCallbackUrl: 'string',
  webhookUrl: 'string',
  defaultWebhookSubscription: 'not specified',
  offsetProject: 'string',
  privacyUrl: 'string',
  tosUrl: 'string',
  buttonOnlyShopTrees: 'boolean',
  climateActionMode: 'object',
  'climateActionMode.type': 'enumeration',
  'climateActionMode.amount': 'number',
  impactOffsetProjects: 'array',
  'impactOffsetProjects[0]': 'not specified',
  notificationSettings: 'object',
  'notificationSettings.webhookFailure': 'object',
  'notificationSettings.webhookFailure.emailNotification': 'object',
  'notificationSettings.webhookFailure.emailNotification.active': 'boolean',
  'notificationSettings.webhookFailure.emailNotification.emails': 'array',
  'notificationSettings.webhookFailure.emailNotification.emails[0]': 'e-mail address',
  manuallyApproved: 'boolean',
}

const companyAddress: Fields = {
  street: 'string',
  buildingNumber: 'string',
  subStreet: 'string',
  town: 'string',
  postCode: 'string',
  country: 'string',
}

const beneficiary: Fields = {
  types: 'array',
  'types[0]': 'string',
  shareSize: 'number',
  firstName: 'string',
  middleName: 'string',
  lastName: 'string',
  dob: 'string',
  gender: 'string',
  placeOfBirth: 'string',
  countryOfBirth: 'string',
  nationality: 'string',
  taxResidenceCountry: 'string',
  address: 'object',
  ...under('address', companyAddress),
  idDocs: 'array',
  'idDocs[0]': 'object',
  'idDocs[0].idDocType': 'string',
  'idDocs[0].country': 'string',
  'idDocs[0].number': 'string',
  'idDocs[0].dob': 'string',
  'idDocs[0].issuedDate': 'string',
  'idDocs[0].validUntil': 'string',
}

const onboardingData: Fields = {
  vatNumber: 'string',
  companyName: 'string',
  registrationNumber: 'string',
  country: 'string',
  incorporatedOn: 'string',
  companyType: 'string',
  companyEmail: 'string',
  companyPhone: 'string',
  legalAddress: 'string',
  website: 'string',
  companyAddress: 'object',
  ...under('companyAddress', companyAddress),
  beneficiaries: 'array',
  'beneficiaries[0]': 'object',
  ...under('beneficiaries[0]', beneficiary),
  kybWebSdkUrl: 'string',
  kybStatus: 'enumeration',
  kybAcceptedModalShown: 'boolean',
  vendorApplicantId: 'string',
}

/** Table 2.3. */
const merchantUpdated: Fields = {
  id: 'string',
  createdAt: 'not specified',
  updatedAt: 'not specified',
  legalName: 'string',
  displayName: 'string',
  email: 'string',
  appId: 'string',
  users: 'array',
  'users[0]': 'string',
  plan: 'object',
  'plan.dealType': 'enumeration',
  'plan.refundApplicationFee': 'boolean',
  'plan.applicationFeeShare': 'number',
  'plan.applicationFixedFeeShare': 'number',
  'plan.amountFreeTransactions': 'number',
  'plan.monthlyInvoiceTotal': 'number',
  marketCapabilitySettings: 'array',
  'marketCapabilitySettings[0]': 'object',
  'marketCapabilitySettings[0].market': 'enumeration',
  'marketCapabilitySettings[0].capabilities': 'array',
  'marketCapabilitySettings[0].capabilities[0]': 'enumeration',
  platformType: 'enumeration',
  hasApiKey: 'boolean',
  internalApplicationName: 'string',
  phone: 'string',
  mobilePhone: 'string',
  address: 'object',
  'address.line1': 'string',
  'address.city': 'string',
  'address.zipCode': 'string',
  'address.country': 'string',
  'address.firstName': 'string',
  'address.lastName': 'string',
  'address.line2': 'string',
  'address.region': 'string',
  onboardingData: 'object',
  ...under('onboardingData', onboardingData),
  category: 'string',
  applicationFeeShare: 'number',
  applicationFixedFeeShare: 'number',
  payout: 'object',
  'payout.verified': 'boolean',
  'payout.enabled': 'boolean',
  'payout.status': 'enumeration',
  'payout.isPayoutsDataAvailable': 'boolean',
  apps: 'array',
  'apps[0]': 'object',
  'apps[0].id': 'string',
  'apps[0].platformType': 'enumeration',
  'apps[0].hasApiKey': 'boolean',
  'apps[0].createdAt': 'not specified',
  'apps[0].updatedAt': 'not specified',
  ...under('apps[0]', repeatedInApps),
  impactAccount: 'boolean',
  pairedMerchantId: 'not specified',
  blacklistedBankIds: 'array',
  'blacklistedBankIds[0]': 'not specified',
  blacklistedOpenBankingProvidersByMarket: 'array',
  'blacklistedOpenBankingProvidersByMarket[0]': 'object',
  'blacklistedOpenBankingProvidersByMarket[0].market': 'enumeration',
  'blacklistedOpenBankingProvidersByMarket[0].blacklistedOpenBankingProviders': 'array',
  'blacklistedOpenBankingProvidersByMarket[0].blacklistedOpenBankingProviders[0]': 'string',
  themeName: 'string',
  deletedAt: 'not specified',
  ssoEnabled: 'boolean',
  ...repeatedInApps,
}

/** Every field of each event, by its path in the event. */
export const documentedFields = {
  mandate_setup_started: { ...envelopeFields, ...under('payload', mandateSetupStarted) },
  merchant_updated: { ...envelopeFields, ...under('payload', merchantUpdated) },
} as const satisfies Record<string, Fields>

function under(path: string, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, kind]) => [`${path}.${name}`, kind]))
}
