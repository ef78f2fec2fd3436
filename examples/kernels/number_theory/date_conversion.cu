// Civil dates from days since 1970 and back, with days before the epoch, and the day of the week.
struct Date {
    int year;
    short month, day;
};

__device__ int floor_div(int a, int b)
{
    int q = a / b;
    return a % b < 0 ? q - 1 : q;
}

__device__ Date civil_from_days(int z)
{
    z += 719468;
    int era = floor_div(z, 146097);
    unsigned doe = z - era * 146097;
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    Date d;
    d.day = doy - (153 * mp + 2) / 5 + 1;
    d.month = mp < 10 ? mp + 3 : mp - 9;
    d.year = (int)yoe + era * 400 + (d.month <= 2);
    return d;
}

__device__ int days_from_civil(Date d)
{
    int y = d.year - (d.month <= 2);
    int era = floor_div(y, 400);
    unsigned yoe = y - era * 400;
    unsigned doy = (153 * (d.month > 2 ? d.month - 3 : d.month + 9) + 2) / 5 + d.day - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int)doe - 719468;
}

extern "C" __global__ void date_conversion(const int *days, Date *dates, int *weekday, int *back, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Date d = civil_from_days(days[i]);
    dates[i] = d;
    weekday[i] = ((days[i] + 4) % 7 + 7) % 7;
    back[i] = days_from_civil(d);
}
