import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { MemoryStore } from 'once-per-key/memory'
import { standardWebhooks, type WebhookEvent, webhookReceiver } from 'once-per-key/webhooks'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BINDINGS, listen, type Step } from '../support/bindings.js'
import { deliver } from '../support/deliveries.js'

/** Deliveries as a sender writes them, with every value that the document shows as a sample, where it shows it. */
const SAMPLES = {
  'a mandate setup, in full': `{
    "id": "3f0c8f0e-5d5e-4c58-9a53-0a7f0d7f3f11", "type": "mandate_setup_started", "date": "2026-11-21T12:00:00.000Z",
    "payload": {
      "referenceId": "cus_8812", "reference": "INV-2026\\u20110042", "userNotificationEmail": "zoë@bücher.example",
      "signature": { "ip": "2001:db8::7", "signedAt": 1795262400, "token": "eyJhbGciOi..." },
      "creditor": { "id": "SE12ZZZ", "name": "Société \\"Générale\\" d’Électricité", "address": {
        "street": "Rue de l'Église 4", "city": "Liège", "postalCode": "4000", "country": "BE" } }
    }
  }`,
  'a mandate setup of which little is known': `{"id":"evt_2","type":"mandate_setup_started","date":"1795262400",
    "payload":{"referenceId":null,"reference":"","signature":{"ip":null,"signedAt":null},"creditor":null}}`,
  'a merchant, in full': `{
    "id": "0b6d7c1e-merchant", "type": "merchant_updated", "date": "Sat, 21 Nov 2026 12:00:00 GMT", "attempt": 3,
    "payload": {
      "id": "64f1", "createdAt": "2026-01-05T09:00:00.000Z", "updatedAt": { "$date": 1795262400000 }, "deletedAt": null,
      "legalName": "Smørrebrød & Co. ApS", "displayName": "Smørrebrød 🥪", "email": "", "appId": "app_1", "users": ["u_1", "u_2"],
      "plan": { "dealType": "S", "refundApplicationFee": false, "applicationFeeShare": 0.0125,
        "applicationFixedFeeShare": 0, "amountFreeTransactions": 100, "monthlyInvoiceTotal": 1e3 },
      "marketCapabilitySettings": [ { "market": "DK", "capabilities": ["ais"] }, { "market": "SE", "capabilities": [] } ],
      "platformType": "custom", "hasApiKey": true, "internalApplicationName": "main", "phone": "+45 12 34 56 78",
      "address": { "line1": "Main Street 1", "city": "København", "zipCode": "1050", "country": "DK", "firstName": "Grace",
        "lastName": "Hopper", "line2": null, "region": null },
      "onboardingData": {
        "companyName": "Smørrebrød & Co. ApS", "vatNumber": "DK12345678", "incorporatedOn": "2020-01-01",
        "companyAddress": { "street": "Main Street", "buildingNumber": "1B", "subStreet": "", "town": "København" },
        "beneficiaries": [ { "types": ["ubo", "director"], "shareSize": 51.5, "firstName": "Grace", "middleName": null,
          "address": { "country": "DK" }, "idDocs": [ { "idDocType": "PASSPORT", "number": "X0000000", "validUntil": "2034-01-01" } ] } ],
        "kybStatus": "init", "kybAcceptedModalShown": false, "vendorApplicantId": "5f1f", "riskLabels": ["new"]
      },
      "payout": { "verified": false, "enabled": false, "status": "pending", "isPayoutsDataAvailable": false },
      "apps": [ { "id": "app_1", "hasApiKey": false, "createdAt": 1767603600000,
        "climateActionMode": { "type": "transaction", "amount": 0 }, "impactOffsetProjects": [],
        "notificationSettings": { "webhookFailure": { "emailNotification": { "active": true, "emails": ["ops@shop.example"] } } } },
        {} ],
      "impactAccount": false, "pairedMerchantId": null, "blacklistedBankIds": [],
      "blacklistedOpenBankingProvidersByMarket": [ { "market": "DK", "blacklistedOpenBankingProviders": ["bank-a"] } ],
      "themeName": "default", "ssoEnabled": false, "defaultWebhookSubscription": null, "buttonOnlyShopTrees": false,
      "climateActionMode": { "type": "transaction", "amount": 0 }, "impactOffsetProjects": [ 7, "forest" ],
      "notificationSettings": { "webhookFailure": { "emailNotification": { "active": false, "emails": [] } } },
      "manuallyApproved": true, "somethingNew": { "since": 2027 }
    }
  }`,
  'a merchant of which nothing is known': '{"id":"evt_4","type":"merchant_updated","date":"","payload":{}}',
} as const

/** What an application reads from an event, without a cast. */
function readings(event: WebhookEvent): readonly unknown[] {
  switch (event.type) {
    case 'mandate_setup_started': {
      const { reference, creditor, signature } = event.payload
      return [reference, creditor?.address?.city, signature?.signedAt]
    }
    case 'merchant_updated': {
      const { displayName, plan, onboardingData, apps } = event.payload
      const beneficiary = onboardingData?.beneficiaries?.[0]
      return [displayName, plan?.monthlyInvoiceTotal, beneficiary?.idDocs?.[0]?.number, apps?.length]
    }
    case 'unknown':
      return [event.sentType]
  }
}

const READ: Readonly<Record<keyof typeof SAMPLES, readonly unknown[]>> = {
  'a mandate setup, in full': ['INV-2026\u20110042', 'Liège', 1_795_262_400],
  'a mandate setup of which little is known': ['', undefined, null],
  'a merchant, in full': ['Smørrebrød 🥪', 1_000, 'X0000000', 2],
  'a merchant of which nothing is known': [undefined, undefined, undefined, undefined],
}

describe.each(BINDINGS)('on $name', (binding) => {
  test.each(Object.entries(SAMPLES))('%s is handled once, as it was sent', async (name, text) => {
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const handled: WebhookEvent[] = []
    const handle = (event: WebhookEvent) => void handled.push(event)
    const receiver = webhookReceiver({
      store: new MemoryStore(),
      source: 'payments',
      verify: standardWebhooks({ secrets: [secret] }),
      on: { mandate_setup_started: handle, merchant_updated: handle },
    })
    const running = await listen(binding.listener([receiver as Step]))
    onTestFinished(running.close)
    const { id, type } = JSON.parse(text)
    const send = (body: string) => {
      const now = new Date()
      const headers = {
        'Webhook-Id': id,
        'Webhook-Timestamp': String(Math.floor(now.getTime() / 1_000)),
        'Webhook-Signature': new Webhook(secret).sign(id, now, text),
      }
      return deliver(running.port, { path: `/api/service/webhook-event/${type}`, headers, body: Buffer.from(body) })
    }
    expect((await send(text)).status).toBe(200)
    expect((await send(text)).header('idempotent-replayed')).toBe('true')
    // The same value in other bytes is not what was signed.
    expect((await send(JSON.stringify(JSON.parse(text), null, 1))).status).toBe(401)
    expect(handled).toEqual([JSON.parse(text)])
    expect(handled.map(readings)).toEqual([READ[name as keyof typeof SAMPLES]])
  })
})
