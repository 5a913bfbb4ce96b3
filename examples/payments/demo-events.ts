import type { KnownWebhookEvent } from 'once-per-key/webhooks'
import type { Merchant } from './merchants.js'
import type { EventContent } from './webhook-event.js'

/** A whole event of each type, as `POST /demo/events/:type` fires it. The payload is the same each time: an id keeps its content. */
export const demoEvents: Readonly<Record<KnownWebhookEvent['type'], (merchant: Merchant, now: Date) => EventContent>> =
  {
    mandate_setup_started: (merchant, now) => ({
      type: 'mandate_setup_started',
      date: now.toISOString(),
      payload: {
        referenceId: 'cus_demo',
        reference: 'Subscription 1042',
        userNotificationEmail: 'grace@example.com',
        signature: { ip: '192.0.2.7', signedAt: '2026-01-05T09:00:00.000Z', token: 'sig_demo' },
        creditor: {
          id: merchant.id,
          name: merchant.name,
          address: { street: 'Main Street 1', city: 'Copenhagen', postalCode: '1050', country: 'DK' },
        },
      },
    }),
    merchant_updated: (merchant, now) => ({
      type: 'merchant_updated',
      date: now.toISOString(),
      payload: merchantPayload(merchant),
    }),
  }

type MerchantPayload = Extract<KnownWebhookEvent, { type: 'merchant_updated' }>['payload']

function merchantPayload({ id, name }: Merchant): MerchantPayload {
  const createdAt = '2026-01-05T09:00:00.000Z'
  const updatedAt = '2026-11-05T09:00:00.000Z'
  const inEachApp = {
    websiteUrl: 'https://shop.example',
    shopLogo: 'https://shop.example/logo.png',
    quoteCallbackUrl: 'https://shop.example/quote',
    completeCallbackUrl: 'https://shop.example/complete',
    successCallbackUrl: 'https://shop.example/success',
    errorCallbackUrl: 'https://shop.example/error',
    webhookUrl: 'https://shop.example/webhooks',
    privacyUrl: 'https://shop.example/privacy',
    tosUrl: 'https://shop.example/terms',
    defaultWebhookSubscription: null,
    offsetProject: 'forest',
    buttonOnlyShopTrees: false,
    climateActionMode: { type: 'transaction', amount: 0 },
    impactOffsetProjects: [],
    notificationSettings: { webhookFailure: { emailNotification: { active: true, emails: ['ops@shop.example'] } } },
    manuallyApproved: true,
    platformType: 'custom',
    hasApiKey: true,
  }
  const place = {
    street: 'Main Street',
    buildingNumber: '1',
    subStreet: '',
    town: 'Copenhagen',
    postCode: '1050',
    country: 'DK',
  }
  return {
    ...inEachApp,
    id,
    createdAt,
    updatedAt,
    deletedAt: null,
    legalName: `${name} ApS`,
    displayName: name,
    email: 'owner@shop.example',
    appId: 'app_demo',
    users: ['usr_demo'],
    plan: {
      dealType: 'S',
      refundApplicationFee: false,
      applicationFeeShare: 0.01,
      applicationFixedFeeShare: 0,
      amountFreeTransactions: 100,
      monthlyInvoiceTotal: 0,
    },
    marketCapabilitySettings: [{ market: 'DK', capabilities: ['ais'] }],
    internalApplicationName: 'demo',
    phone: '+4512345678',
    mobilePhone: '+4587654321',
    address: {
      line1: 'Main Street 1',
      line2: '',
      city: 'Copenhagen',
      zipCode: '1050',
      region: '',
      country: 'DK',
      firstName: 'Grace',
      lastName: 'Hopper',
    },
    onboardingData: {
      vatNumber: 'DK12345678',
      companyName: `${name} ApS`,
      registrationNumber: '12345678',
      country: 'DK',
      incorporatedOn: '2020-01-01',
      companyType: 'limited',
      companyEmail: 'owner@shop.example',
      companyPhone: '+4512345678',
      legalAddress: 'Main Street 1, 1050 Copenhagen',
      website: 'https://shop.example',
      companyAddress: place,
      beneficiaries: [
        {
          types: ['ubo'],
          shareSize: 100,
          firstName: 'Grace',
          middleName: 'Brewster',
          lastName: 'Hopper',
          dob: '1906-12-09',
          gender: 'female',
          placeOfBirth: 'New York',
          countryOfBirth: 'US',
          nationality: 'US',
          taxResidenceCountry: 'DK',
          address: place,
          idDocs: [
            {
              idDocType: 'passport',
              country: 'US',
              number: 'X0000000',
              dob: '1906-12-09',
              issuedDate: '2024-01-01',
              validUntil: '2034-01-01',
            },
          ],
        },
      ],
      kybWebSdkUrl: 'https://kyb.example/sdk',
      kybStatus: 'init',
      kybAcceptedModalShown: false,
      vendorApplicantId: 'applicant_demo',
    },
    category: 'retail',
    applicationFeeShare: 0.01,
    applicationFixedFeeShare: 0,
    payout: { verified: true, enabled: true, status: 'pending', isPayoutsDataAvailable: true },
    apps: [{ ...inEachApp, id: 'app_demo', createdAt, updatedAt }],
    impactAccount: false,
    pairedMerchantId: null,
    blacklistedBankIds: [],
    blacklistedOpenBankingProvidersByMarket: [{ market: 'DK', blacklistedOpenBankingProviders: ['example-bank'] }],
    themeName: 'default',
    ssoEnabled: false,
  }
}
