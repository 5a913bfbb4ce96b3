import { createListSchema, createSampledEnum, createTolerantObject, finiteNumber, flag, text } from './fields.js'

/** What a merchant declared about its business, and its verification status. */
export interface OnboardingData {
  /** The VAT number. */
  readonly vatNumber?: string | null | undefined
  /** The registered name of the company. */
  readonly companyName?: string | null | undefined
  /** The registration number of the company. */
  readonly registrationNumber?: string | null | undefined
  /** The country of the company. */
  readonly country?: string | null | undefined
  /** When the company was incorporated; the format is not documented. */
  readonly incorporatedOn?: string | null | undefined
  /** The legal form of the company. */
  readonly companyType?: string | null | undefined
  /** The company's e-mail address as sent; documented as a plain string. */
  readonly companyEmail?: string | null | undefined
  /** The telephone number of the company. */
  readonly companyPhone?: string | null | undefined
  /** The legal address as one string. */
  readonly legalAddress?: string | null | undefined
  /** The website of the company. */
  readonly website?: string | null | undefined
  /** The company's address as separate fields. */
  readonly companyAddress?: CompanyAddress | null | undefined
  /** The people who own or control the company. */
  readonly beneficiaries?: readonly Beneficiary[] | null | undefined
  /** The URL of the verification provider's web SDK. */
  readonly kybWebSdkUrl?: string | null | undefined
  /** The verification status. One value is known; others may be added. */
  readonly kybStatus?: 'init' | (string & {}) | null | undefined
  /** Whether the merchant has seen that it was accepted. */
  readonly kybAcceptedModalShown?: boolean | null | undefined
  /** Identifies the applicant at the identity-verification provider. */
  readonly vendorApplicantId?: string | null | undefined
}

/** The address of a company or of a beneficiary. */
export interface CompanyAddress {
  /** The street. */
  readonly street?: string | null | undefined
  /** The building number. */
  readonly buildingNumber?: string | null | undefined
  /** A detail of the street address, for example a staircase. */
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
  /** Why the person is a beneficiary. The values are not documented. */
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
  /** The person's address. */
  readonly address?: CompanyAddress | null | undefined
  /** The person's identity documents. */
  readonly idDocs?: readonly IdDoc[] | null | undefined
}

/** An identity document. */
export interface IdDoc {
  /** The kind of document. */
  readonly idDocType?: string | null | undefined
  /** The country that issued it. */
  readonly country?: string | null | undefined
  /** The number of the document. */
  readonly number?: string | null | undefined
  /** The date of birth on the document; the format is not documented. */
  readonly dob?: string | null | undefined
  /** When it was issued; the format is not documented. */
  readonly issuedDate?: string | null | undefined
  /** The expiry date; the format is not documented. */
  readonly validUntil?: string | null | undefined
}

const companyAddress = createTolerantObject({
  street: text,
  buildingNumber: text,
  subStreet: text,
  town: text,
  postCode: text,
  country: text,
})

const idDoc = createTolerantObject({
  idDocType: text,
  country: text,
  number: text,
  dob: text,
  issuedDate: text,
  validUntil: text,
})

const beneficiary = createTolerantObject({
  types: createListSchema(text),
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
  idDocs: createListSchema(idDoc),
})

export const onboardingData = createTolerantObject({
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
  beneficiaries: createListSchema(beneficiary),
  kybWebSdkUrl: text,
  kybStatus: createSampledEnum<'init'>(),
  kybAcceptedModalShown: flag,
  vendorApplicantId: text,
})
