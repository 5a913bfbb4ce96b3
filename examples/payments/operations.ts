import type { Operation } from './operation.js'
import { createBeneficiaryPayout } from './operations/beneficiary-payout.js'
import { createCheckoutSession, expireCheckoutSession } from './operations/checkout-session.js'
import { createCustomer, deleteCustomer, updateCustomer } from './operations/customer.js'
import { executeFx } from './operations/fx.js'
import { createOrder, expireOrder } from './operations/order.js'
import { createPayout } from './operations/payout.js'
import { createRefund } from './operations/refund.js'
import { createSubaccount } from './operations/subaccount.js'
import {
  createWebhookSubscription,
  deleteWebhookSubscription,
  updateWebhookSubscription,
} from './operations/webhook-subscription.js'

/** The API: its 15 POST paths. */
export const operations: readonly Operation[] = [
  createBeneficiaryPayout,
  createCheckoutSession,
  expireCheckoutSession,
  createCustomer,
  deleteCustomer,
  updateCustomer,
  executeFx,
  createOrder,
  expireOrder,
  createPayout,
  createRefund,
  createSubaccount,
  createWebhookSubscription,
  deleteWebhookSubscription,
  updateWebhookSubscription,
]
