import { finiteNumber, flag, listOf, sampled, text, tolerantObject } from './fields.js'

/** What a merchant declared about its business, and how far its verification is. */
export interface OnboardingData {
  /** The VAT number. */
  readonly vatNumber?: string | null | undefined
  /** The name under which the company is registered. */
  readonly companyName?: string | null | undefined
  /** The number under which the company is registered. */
  readonly registrationNumber?: string | null | undefined
  /** The country of the company. */
  readonly country?: string | null | undefined
  /** When the company was incorporated; the format is not documented. */
  readonly incorporatedOn?: string | null | undefined
  /** The legal form of the company. */
  readonly companyType?: string | null | undefined
  /** The e-mail address of the company, as it was sent: the document calls it a string. */
  readonly companyEmail?: string | null | undefined
  /** The telephone number of the company. */
  readonly companyPhone?: string | null | undefined
  /** The legal address, in one string. */
  readonly legalAddress?: string | null | undefined
  /** The website of the company. */
  readonly website?: string | null | undefined
  /** The address of the company, in parts. */
  readonly companyAddress?: CompanyAddress | null | undefined
  /** Who owns or controls the company. */
  readonly beneficiaries?: readonly Beneficiary[] | null | undefined
  /** The URL of the verification's web SDK. */
  readonly kybWebSdkUrl?: string | null | undefined
  /** How far the verification is. One value is known; others may come. */
  readonly kybStatus?: 'init' | (string & {}) | null | undefined
  /** Whether the merchant was shown that it has been accepted. */
  readonly kybAcceptedModalShown?: boolean | null | undefined
  /** Identifies the applicant at the identity-verification provider. */
  readonly vendorApplicantId?: string | null | undefined
}

/** The address of a company or of a beneficiary. */
export interface CompanyAddress {
  /** The street. */
  readonly street?: string | null | undefined
  /** The number of the building. */
  readonly buildingNumber?: string | null | undefined
  /** A part of the street's address, such as a staircase. */
  readonly subStreet?: string | null | undefined
  /** The town. */
  readonly town?: string | null | undefined
  /** The postal code. */
  readonly postCode?: string | null | undefined
  /** The country. */
  readonly country?: string | null | undefined
}

/** A person who owns or controls a company. */
export interface Beneficiary {
  /** What makes the person a beneficiary. The values are not documented. */
  readonly types?: readonly string[] | null | undefined
  /** The share that the person owns; the unit is not documented. */
  readonly shareSize?: number | null | undefined
  /** The first name. */
  readonly firstName?: string | null | undefined
  /** The middle name. */
  readonly middleName?: string | null | undefined
  /** The last name. */
  readonly lastName?: string | null | undefined
  /** The date of birth; the format is not documented. */
  readonly dob?: string | null | undefined
  /** The gender. */
  readonly gender?: string | null | undefined
  /** The place of birth. */
  readonly placeOfBirth?: string | null | undefined
  /** The country of birth. */
  readonly countryOfBirth?: string | null | undefined
  /** The nationality. */
  readonly nationality?: string | null | undefined
  /** The country in which the person pays taxes. */
  readonly taxResidenceCountry?: string | null | undefined
  /** Where the person lives. */
  readonly address?: CompanyAddress | null | undefined
  /** The documents that show who the person is. */
  readonly idDocs?: readonly IdDoc[] | null | undefined
}

/** A document that shows who a person is. */
export interface IdDoc {
  /** The kind of document. */
  readonly idDocType?: string | null | undefined
  /** The country that issued it. */
  readonly country?: string | null | undefined
  /** The number of the document. */
  readonly number?: string | null | undefined
  /** The date of birth in it; the format is not documented. */
  readonly dob?: string | null | undefined
  /** When it was issued; the format is not documented. */
  readonly issuedDate?: string | null | undefined
  /** Until when it is valid; the format is not documented. */
  readonly validUntil?: string | null | undefined
}

const companyAddress = tolerantObject({
  street: text,
  buildingNumber: text,
  subStreet: text,
  town: text,
  postCode: text,
  country: text,
})

const idDoc = tolerantObject({
  idDocType: text,
  country: text,
  number: text,
  dob: text,
  issuedDate: text,
  validUntil: text,
})

const beneficiary = tolerantObject({
  types: listOf(text),
  shareSize: finiteNumber,
  firstName: text,
  middleName: text,
  lastName: text,
  dob: text,
  gender: text,
  placeOfBirth: text,
  countryOfBirth: text,
  nationality: text,
  taxResidenceCountry: text,
  address: companyAddress,
  idDocs: listOf(idDoc),
})

export const onboardingData = tolerantObject({
  vatNumber: text,
  companyName: text,
  registrationNumber: text,
  country: text,
  incorporatedOn: text,
  companyType: text,
  companyEmail: text,
  companyPhone: text,
  legalAddress: text,
  website: text,
  companyAddress,
  beneficiaries: listOf(beneficiary),
  kybWebSdkUrl: text,
  kybStatus: sampled<'init'>(),
  kybAcceptedModalShown: flag,
  vendorApplicantId: text,
})
